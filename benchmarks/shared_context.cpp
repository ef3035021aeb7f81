// shared_context THREADS CONTEXTS [SECONDS [BYTES [WINDOW]]]: what threads lose that share a context. Each exchanges messages
// with a context of its own in the same process, WINDOW at once to and fro, over one context that all share or one for each
// thread. Both ends of an exchange are the same thread, so nobody waits for another, and two threads are busy on two cores.
//
// Prints the round trips per second of all threads together, as JSON.
#include <railmux/context.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Contexts = std::vector<std::unique_ptr<railmux::Context>>;

constexpr int between_looks = 16;  // at the clock, in exchanges

struct Side {
    railmux::Context* context = nullptr;
    railmux::Peer other;
};

/// What a thread does: so many messages from one side to the other.
class Exchange {
public:
    Exchange(railmux::Tag tag, std::size_t bytes, int window)
        : tag_(tag), window_(window), out_(bytes), in_(bytes), sends_(window), receives_(window) {}

    void round_trip(Side& mine, Side& peers) {
        pass(mine, peers);
        pass(peers, mine);
    }
    /// Until the two are connected, and what is measured of it is known.
    void settle(Side& mine, Side& peers) {
        const auto end = Clock::now() + std::chrono::milliseconds(300);
        auto receive = peers.context->irecv(peers.other, tag_, in_);
        auto send = mine.context->isend(mine.other, tag_, out_);
        while (send.active() || receive.active() || Clock::now() < end) {
            if (send.active()) static_cast<void>(mine.context->test(send));
            if (receive.active()) static_cast<void>(peers.context->test(receive));
            mine.context->progress();
            peers.context->progress();
        }
    }

private:
    void pass(Side& from, Side& to) {
        for (auto& receive : receives_) receive = to.context->irecv(to.other, tag_, in_);
        if (window_ == 1) {
            from.context->send(from.other, tag_, out_);
        } else {
            for (auto& send : sends_) send = from.context->isend(from.other, tag_, out_);
            from.context->wait_all(sends_);
        }
        to.context->wait_all(receives_);
    }

    railmux::Tag tag_;
    int window_;
    std::vector<std::byte> out_;
    std::vector<std::byte> in_;
    std::vector<railmux::Request> sends_;
    std::vector<railmux::Request> receives_;
};

/// Each waits for the others' goodbye.
void leave(Contexts& all) {
    std::vector<std::thread> leaving;
    for (auto& context : all) leaving.emplace_back([&context] { context->leave(); });
    for (auto& thread : leaving) thread.join();
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) {
        std::fprintf(stderr, "usage: shared_context THREADS CONTEXTS [SECONDS [BYTES [WINDOW]]]\n");
        return 2;
    }
    const auto threads = std::strtoul(arguments[1], nullptr, 10);
    const bool shared = std::strtoul(arguments[2], nullptr, 10) == 1;
    const std::chrono::duration<double> time(count > 3 ? std::atof(arguments[3]) : 1);
    const auto bytes = count > 4 ? std::strtoul(arguments[4], nullptr, 10) : 8;
    const int window = count > 5 ? std::atoi(arguments[5]) : 1;

    auto config = railmux::Config::load();
    Contexts all;
    const auto add = [&](const char* level) {
        config.set("thread_level", level);
        return all.emplace_back(std::make_unique<railmux::Context>(config)).get();
    };
    auto* const first = add(shared ? "multiple" : "single");
    std::atomic<bool> go{false};
    std::atomic<std::uint64_t> round_trips{0};
    Clock::time_point stop;
    std::vector<std::thread> running;
    for (std::uint32_t t = 0; t < threads; ++t) {
        Side mine{shared || t == 0 ? first : add("single"), {}};
        Side peers{add("single"), {}};
        mine.other = mine.context->add_peer(peers.context->address());
        peers.other = peers.context->add_peer(mine.context->address());
        Exchange(t, bytes, window).settle(mine, peers);
        running.emplace_back([&, mine, peers, t]() mutable {
            Exchange exchange(t, bytes, window);
            go.wait(false);
            std::uint64_t done = 0;
            for (; done % between_looks != 0 || Clock::now() < stop; ++done) exchange.round_trip(mine, peers);
            round_trips += done * static_cast<std::uint64_t>(window);
        });
    }
    stop = Clock::now() + std::chrono::duration_cast<Clock::duration>(time);
    go = true;
    go.notify_all();
    for (auto& thread : running) thread.join();
    std::printf("{\"round_trips_per_s\":%.0f}\n", static_cast<double>(round_trips.load()) / time.count());
    leave(all);
    return 0;
}

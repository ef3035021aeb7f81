// contention CONTEXTS [SECONDS]: two threads that exchange messages of 8 bytes with a thread each of another process, over one
// context that both share, or over a context for each of them. To be run as `railmux run -n 2`.
//
// Rank 0 prints the round trips per second of both threads together, as JSON.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <railmux/context.hpp>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::uint32_t threads = 2;
constexpr std::size_t most_address = 64 << 10;

/// A context and who it talks to.
struct End {
    railmux::Context* context = nullptr;
    railmux::Peer other;
};

/// Rank 0 asks until the time is over, which it says by its last message.
std::uint64_t ask(const End& end, railmux::Tag tag, std::chrono::duration<double> time) {
    std::array<std::byte, 8> bytes{};
    std::uint64_t round_trips = 0;
    const auto stop = Clock::now() + time;
    for (bool over = false; !over; ++round_trips) {
        over = Clock::now() >= stop;
        bytes[0] = std::byte{over};
        auto answer = end.context->irecv(end.other, tag, bytes);
        std::array<std::byte, 8> question = bytes;
        end.context->send(end.other, tag, question);
        end.context->wait(answer);
    }
    return round_trips;
}

void answer(const End& end, railmux::Tag tag) {
    std::array<std::byte, 8> bytes{};
    for (bool over = false; !over;) {
        end.context->recv(end.other, tag, bytes);
        over = bytes[0] != std::byte{};
        end.context->send(end.other, tag, bytes);
    }
}

/// The peer that the other process's second context is for ours.
railmux::Peer exchange(railmux::Context& first, railmux::Context& second) {
    const auto mine = second.address();
    std::vector<std::byte> theirs(most_address);
    const auto other = first.peer(1 - first.rank());
    auto receive = first.irecv(other, threads, theirs);
    first.send(other, threads, mine);
    theirs.resize(first.wait(receive).bytes);
    return second.add_peer(theirs);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return 2;
    const bool two = std::atoi(arguments[1]) == 2;
    const std::chrono::duration<double> time(count > 2 ? std::atof(arguments[2]) : 1);
    auto config = railmux::Config::load();
    config.set("thread_level", two ? "single" : "multiple");
    railmux::Context first(config);
    const auto other = first.peer(1 - first.rank());
    std::optional<railmux::Context> second;
    std::array<End, threads> ends{End{&first, other}, End{&first, other}};
    if (two) {
        config.set("job.server", "").set("job.rank", "0").set("job.size", "1");
        second.emplace(config);
        ends[1] = {&*second, exchange(first, *second)};
    }
    std::atomic<std::uint64_t> round_trips = 0;
    std::vector<std::thread> all;
    for (std::uint32_t t = 0; t < threads; ++t) {
        all.emplace_back([&, t] {
            if (first.rank() == 0) {
                round_trips += ask(ends[t], t, time);
            } else {
                answer(ends[t], t);
            }
        });
    }
    for (auto& thread : all) thread.join();
    if (first.rank() == 0) {
        std::printf("{\"round_trips_per_s\":%.0f}\n", static_cast<double>(round_trips.load()) / time.count());
    }
    return 0;
}

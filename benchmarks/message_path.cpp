// What a small message costs each side, in instructions: two contexts of one process take turns, so that nobody ever waits and
// the count is the same every time. To be run by the script `instructions`, which counts the calls below with callgrind, or
// alone, for a time by the clock: message_path RAIL [MESSAGES [BYTES [WINDOW [SLOWED [TRACE]]]]]. RAIL may list several, and
// the environment says the rest (RAILMUX_TCP_INTERFACES=127.0.0.2,127.0.0.3 makes two networks of the loopback). With
// a WINDOW, so many are begun at once, and then waited for. Where something slows the program, time goes by as much slower with
// SLOWED: what is done once in so many microseconds is done once in as many messages as at full speed. With a TRACE each side
// writes one, to a file of that name and .a or .b.
#include <railmux/context.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "slowed_time.hpp"

namespace {

constexpr railmux::Tag tag = 1;

struct Side {
    explicit Side(const railmux::Config& config, std::size_t bytes) : context(config), data(bytes) {}
    railmux::Context context;
    railmux::Peer other;
    std::vector<std::byte> data;
};

// The calls that are counted: never inlined, and no two alike, so that each has a line of its own.
#define RAILMUX_COUNTED [[gnu::noinline]]
RAILMUX_COUNTED void send_blocking(Side& side) { side.context.send(side.other, tag, side.data); }
RAILMUX_COUNTED railmux::Request send_begin(Side& side) { return side.context.isend(side.other, tag, side.data); }
RAILMUX_COUNTED void send_end(Side& side, railmux::Request& request) { side.context.wait(request); }
RAILMUX_COUNTED railmux::Request receive_begin(Side& side) { return side.context.irecv(side.other, tag, side.data); }
RAILMUX_COUNTED railmux::Status receive_end(Side& side, railmux::Request& request) {
    return side.context.wait(request);
}
RAILMUX_COUNTED void look_in_vain(Side& side) { side.context.progress(); }

void step(Side& from, Side& to) {
    auto receive = receive_begin(to);
    send_blocking(from);
    receive_end(to, receive);
}

void step_begun(Side& from, Side& to) {
    auto receive = receive_begin(to);
    auto send = send_begin(from);
    send_end(from, send);
    receive_end(to, receive);
}

RAILMUX_COUNTED void counted(Side& a, Side& b, int messages) {
    for (int i = 0; i < messages; i += 4) {
        step(a, b);
        step(b, a);
        step_begun(a, b);
        step_begun(b, a);
        look_in_vain(a);
        look_in_vain(b);
    }
}

/// So many at once from one to the other.
void burst(Side& from, Side& to, int messages, std::vector<railmux::Request>& sends,
           std::vector<railmux::Request>& receives) {
    for (int i = 0; i < messages; ++i) receives.push_back(receive_begin(to));
    for (int i = 0; i < messages; ++i) sends.push_back(send_begin(from));
    for (auto& send : sends) send_end(from, send);
    for (auto& receive : receives) receive_end(to, receive);
    sends.clear();
    receives.clear();
}

RAILMUX_COUNTED void counted_bursts(Side& a, Side& b, int messages, int window) {
    std::vector<railmux::Request> sends;
    std::vector<railmux::Request> receives;
    for (int i = 0; i < messages; i += 2 * window) {
        burst(a, b, window, sends, receives);
        burst(b, a, window, sends, receives);
    }
}

/// All links of a side are measured: no probe's frames are under way, behind which a message would wait for the next call.
bool measured(Side& side) {
    const auto models = side.context.models(side.other);
    return !models.empty() && std::ranges::none_of(models, [](const railmux::LinkModel& link) {
        return link.source == railmux::ModelSource::guess;
    });
}

/// Until there are links, and what is measured of them is known, or has been tried in vain.
void settle(Side& a, Side& b) {
    const auto begin = std::chrono::steady_clock::now();
    auto receive = receive_begin(b);
    auto send = send_begin(a);
    bool received = false;
    const auto settled = [&] {
        const auto took = std::chrono::steady_clock::now() - begin;
        const bool known = (measured(a) && measured(b)) || took > std::chrono::seconds(8);
        return known && received && !send.active() && took > std::chrono::milliseconds(300);
    };
    while (!settled()) {
        if (send.active()) static_cast<void>(a.context.test(send));
        if (!received) received = b.context.test(receive).has_value();
        a.context.progress();
        b.context.progress();
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: message_path RAIL [MESSAGES [BYTES [WINDOW [SLOWED [TRACE]]]]]\n");
        return 2;
    }
    const int messages = count > 2 ? std::atoi(arguments[2]) : 100'000;
    const std::size_t bytes = count > 3 ? std::strtoull(arguments[3], nullptr, 10) : 8;
    auto config = railmux::Config::load();
    config.set("rails", arguments[1]);
    config.set("progress", "poll");
    // Where the program is slowed, copying is, too, and a kilobyte would be asked for: one side would wait for the other, which
    // is this thread.
    if (bytes > 512) config.set("eager.max", "16K");
    const auto of_side = [&](const char* side) {
        auto own = config;
        if (count > 6) own.set("trace", arguments[6] + std::string(side));
        return own;
    };
    Side a(of_side(".a"), bytes);
    Side b(of_side(".b"), bytes);
    a.other = a.context.add_peer(b.context.address());
    b.other = b.context.add_peer(a.context.address());
    settle(a, b);
    const int window = count > 4 ? std::atoi(arguments[4]) : 1;
    if (count > 5 && std::atof(arguments[5]) > 1) slow_time(std::atof(arguments[5]));
    const auto begin = std::chrono::steady_clock::now();
    window > 1 ? counted_bursts(a, b, messages, window) : counted(a, b, messages);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::printf("%.1f ns a message, sending and receiving\n", took.count() / messages);
    std::thread end([&b] { b.context.leave(); });  // each waits for the other's goodbye
    a.context.leave();
    end.join();
}

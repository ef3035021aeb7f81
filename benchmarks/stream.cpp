// stream: messages in one direction for as long as somebody wants, and what arrives every 10 ms.
//
//   stream --listen PORT                       receives
//   stream --connect HOST:PORT BYTES WINDOW    sends messages of BYTES, WINDOW under way, until its standard input ends
//
// Lines on standard output, times in us of the monotonic clock, which processes of one machine share: "at TIME BYTES GAP" of
// the receiver: what had arrived in the 10 ms before, and the longest time without any arrival that began in them; "down TIME
// RAIL CAUSE" and "up TIME RAIL CAUSE" of both.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include <railmux/context.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using railmux::Context;
using railmux::Peer;

constexpr railmux::Tag tag = 1;
constexpr std::size_t largest = 1 << 20;
constexpr std::size_t receives = 256;  // posted at a time: no sender has more under way
constexpr auto step = std::chrono::milliseconds(10);
constexpr auto patience = std::chrono::seconds(10);

long long us(Clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count();
}

void tell_events(Context& context) {
    const auto say = [](const char* what, const railmux::RailEvent& event) {
        if (!event.peer.valid()) return;
        std::printf("%s %lld %s %s\n", what, us(Clock::now()), event.rail.c_str(), event.cause.c_str());
        std::fflush(stdout);
    };
    context.on_rail_down([say](const railmux::RailEvent& event) { say("down", event); });
    context.on_rail_up([say](const railmux::RailEvent& event) { say("up", event); });
}

/// What arrives, counted as it does: a message that waits for a lost rail does not hide those behind it.
class Arrivals {
public:
    void operator()(const railmux::Status& status) {
        const auto now = Clock::now();
        gap_ = std::max(gap_, now - std::exchange(last_, now));
        for (; now >= end_; end_ += step) {
            const auto gap = std::chrono::duration_cast<std::chrono::microseconds>(std::exchange(gap_, {}));
            std::printf("at %lld %zu %lld\n", us(end_), std::exchange(bytes_, 0), static_cast<long long>(gap.count()));
            std::fflush(stdout);
        }
        bytes_ += status.bytes;
    }

private:
    Clock::time_point last_ = Clock::now();
    Clock::time_point end_ = last_ + step;
    Clock::duration gap_{};
    std::size_t bytes_ = 0;
};

void receive(Context& context, const char* port) {
    context.listen(port);
    const auto from = context.accept(patience);
    if (!from) throw railmux::Error(railmux::ErrorCode::timed_out, "nobody connected", "start the sender");
    std::vector<std::vector<std::byte>> buffers(receives, std::vector<std::byte>(largest));
    Arrivals arrivals;
    const auto post = [&](std::size_t i) {
        return context.irecv(*from, tag, buffers[i], [&](const railmux::Status& status) { arrivals(status); });
    };
    std::vector<railmux::Request> requests;
    for (std::size_t i = 0; i < receives; ++i) requests.push_back(post(i));
    for (std::size_t i = 0;; i = (i + 1) % receives) {
        const auto status = context.wait(requests[i]);
        if (!status.ok() || status.bytes == 0) break;
        requests[i] = post(i);
    }
    for (auto& request : requests) static_cast<void>(request.active() && context.cancel(request));
}

bool wanted() {
    pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
    return ::poll(&input, 1, 0) == 0;
}

void send(Context& context, const char* where, std::size_t bytes, std::size_t window) {
    const Peer to = context.connect(where, patience);
    const std::vector<std::byte> data(bytes);
    std::vector<railmux::Request> requests(window);
    for (std::size_t i = 0; wanted(); i = (i + 1) % window) {
        if (requests[i].active()) context.wait(requests[i]);
        requests[i] = context.isend(to, tag, data);
    }
    context.wait_all(requests);
    context.send(to, tag, {});
}

}  // namespace

int main(int count, char** arguments) {
    const std::string_view side = count > 2 ? arguments[1] : "";
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    if (!(side == "--listen" && count == 3) &&
        !(side == "--connect" && count == 5 && number(3) <= largest && number(4) <= receives && number(4) > 0)) {
        std::fprintf(stderr, "stream --listen PORT | --connect HOST:PORT BYTES WINDOW\n");
        return 2;
    }
    try {
        Context context;
        tell_events(context);
        if (side == "--listen") {
            receive(context, arguments[2]);
        } else {
            send(context, arguments[2], number(3), number(4));
        }
    } catch (const railmux::Error& error) {
        std::fprintf(stderr, "stream: %s\n", error.what());
        return 1;
    }
    return 0;
}

// What starting costs: making a context, and the first message to a new peer, connecting included.
//
//   startup                        time to make a context without peers
//   startup --listen PORT          answers one message
//   startup --connect HOST:PORT    time from isend to the answer, halved: the first message there
#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include <railmux/context.hpp>

using Clock = std::chrono::steady_clock;

static double milliseconds(Clock::time_point since) {
    return std::chrono::duration<double, std::milli>(Clock::now() - since).count();
}

int main(int count, char** arguments) {
    const std::string mode = count > 2 ? arguments[1] : "";
    const auto start = Clock::now();
    railmux::Context context;
    const auto made = milliseconds(start);
    std::array<std::byte, 8> data{};
    if (mode == "--listen") {
        context.listen(arguments[2]);
        const auto peer = context.accept(std::chrono::seconds(30));
        if (!peer) return 1;
        context.recv(*peer, 1, data);
        context.send(*peer, 2, data);
    } else if (mode == "--connect") {
        const auto peer = context.connect(arguments[2]);
        const auto first = Clock::now();
        auto answer = context.irecv(peer, 2, data);
        context.send(peer, 1, data);
        context.wait(answer);
        std::printf("{\"first_message_ms\":%.3f}\n", milliseconds(first));  // there and back: an upper bound
    } else {
        std::printf("{\"context_ms\":%.3f}\n", made);
    }
    return 0;
}

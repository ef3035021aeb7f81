// The time a small message takes: half of the average round trip.
//
//   example_ping_pong --listen 5000             on one host
//   example_ping_pong --connect HOST:5000       on the other
//   railmux run -n 2 example_ping_pong          or both as a job
#include <railmux/context.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <string_view>

#include "example.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr railmux::Tag ball = 7;
constexpr int rounds = 1000;

void serve(railmux::Context& context, railmux::Peer other) {
    std::array<std::byte, 8> message{};
    for (int i = 0; i <= rounds; ++i) {  // one more: the first connects
        context.recv(other, ball, message);
        context.send(other, ball, message);
    }
}

void play(railmux::Context& context, railmux::Peer other) {
    std::array<std::byte, 8> message{};
    context.send(other, ball, message);  // connects, which is not what is timed
    context.recv(other, ball, message);
    const auto begin = Clock::now();
    for (int i = 0; i < rounds; ++i) {
        context.send(other, ball, message);
        context.recv(other, ball, message);
    }
    const std::chrono::duration<double, std::micro> elapsed = Clock::now() - begin;
    std::cout << "half round trip with " << context.name(other) << ": " << elapsed.count() / (2 * rounds) << " us\n";
}

// Waits for the other side to connect.
railmux::Peer guest(railmux::Context& context, std::string_view port) {
    context.listen(port);
    if (const auto peer = context.accept(std::chrono::minutes(1))) return *peer;
    throw railmux::Error(railmux::ErrorCode::timed_out, "nobody connected within a minute",
                         "start the other side with --connect and this host's name, a colon and the port");
}

}  // namespace

int main(int argc, char** argv) {
    return run_example([&](railmux::Context& context) {
        const std::string_view option = argc == 3 ? argv[1] : "";
        if (option == "--listen") {
            serve(context, guest(context, argv[2]));
        } else if (option == "--connect") {
            play(context, context.connect(argv[2]));
        } else if (context.size() != 2) {
            std::cerr << "usage: " << argv[0] << " --listen PORT | --connect HOST:PORT, or under `railmux run -n 2`\n";
            return 2;
        } else if (context.rank() == 0) {
            play(context, context.peer(1));
        } else {
            serve(context, context.peer(0));
        }
        return 0;
    });
}

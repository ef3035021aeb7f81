// Who is there: each process greets all others, also those that join later, says what becomes of them, and leaves after some
// seconds.
//
//   railmux run --name demo -n 2 --keep-going ./example_members 60 &
//   railmux run --join demo -n 2 ./example_members 10
#include <railmux/context.hpp>

#include <poll.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    try {
        const std::chrono::seconds time(argc > 1 ? std::atoi(argv[1]) : 1);
        railmux::Context context;
        std::vector<railmux::Peer> greet;
        const auto say = [](const char* what, const std::string& who) { std::cout << who << what << std::endl; };
        context.on_peer_joined([&](const railmux::PeerEvent& event) { greet.push_back(event.peer); });
        context.on_peer_left([&](const railmux::PeerEvent& event) { say(" has left", context.name(event.peer)); });
        context.on_peer_lost([&](const railmux::PeerEvent& event) { say(" is lost", context.name(event.peer)); });
        for (std::uint32_t rank = 0; rank < context.size(); ++rank) {
            if (rank != context.rank()) greet.push_back(context.peer(rank));
        }
        const std::uint32_t own = context.rank();
        std::uint32_t other = 0;
        auto receive = context.irecv(railmux::any_source, 1, std::as_writable_bytes(std::span(&other, 1)));
        for (const auto end = std::chrono::steady_clock::now() + time; std::chrono::steady_clock::now() < end;) {
            // Detached: whether it arrives shows in the events.
            for (const auto peer : std::exchange(greet, {})) {
                static_cast<void>(context.isend(peer, 1, std::as_bytes(std::span(&own, 1))));
            }
            if (const auto status = context.test(receive)) {
                say(" says hello", context.name(status->peer));
                receive = context.irecv(railmux::any_source, 1, std::as_writable_bytes(std::span(&other, 1)));
            } else if (context.arm()) {
                pollfd wait{context.event_fd(), POLLIN, 0};
                ::poll(&wait, 1, 100);
            }
        }
        context.leave();
        return 0;
    } catch (const railmux::Error& error) {
        std::cerr << error.what() << '\n' << error.cure() << '\n';
        return 1;
    }
}

// Two processes greet each other.
//
//   example_hello --listen 5000                 on one host
//   example_hello --connect HOST:5000           on the other
//   railmux run -n 2 example_hello              or both as a job
#include <railmux/context.hpp>

#include <array>
#include <chrono>
#include <iostream>
#include <string>
#include <string_view>

#include "example.hpp"

namespace {

constexpr railmux::Tag greeting = 1;

// The other process: whoever connects, whom we connect to, or the other rank of the job.
railmux::Peer meet(railmux::Context& context, std::string_view option, std::string_view value) {
    if (option == "--connect") return context.connect(value);
    if (option == "--listen") {
        context.listen(value);
        if (const auto peer = context.accept(std::chrono::minutes(1))) return *peer;
        throw railmux::Error(railmux::ErrorCode::timed_out, "nobody connected within a minute",
                             "start the other side with --connect and this host's name, a colon and the port");
    }
    return context.peer(1 - context.rank());
}

void greet(railmux::Context& context, railmux::Peer other) {
    const std::string text = "hello, " + context.name(other);
    // Started before our own send, so that neither side waits for the other.
    std::array<char, 256> room{};
    auto arriving = context.irecv(other, greeting, std::as_writable_bytes(std::span(room)));
    context.send(other, greeting, std::as_bytes(std::span(text)));
    const auto status = context.wait(arriving);
    if (!status.ok()) throw railmux::Error(status.code, "no greeting: " + context.failure(other));
    std::cout << context.name(other) << " says: " << std::string_view(room.data(), status.bytes) << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
    return run_example([&](railmux::Context& context) {
        if (argc != 3 && context.size() != 2) {
            std::cerr << "usage: " << argv[0] << " --listen PORT | --connect HOST:PORT, or under `railmux run -n 2`\n";
            return 2;
        }
        greet(context, meet(context, argc == 3 ? argv[1] : "", argc == 3 ? argv[2] : ""));
        return 0;
    });
}

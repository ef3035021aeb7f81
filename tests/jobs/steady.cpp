// Two processes that play ping-pong until a file appears: time for a test to trouble the networks between them.
//
//   railmux run -n 2 job_steady FILE
#include <railmux/context.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <iostream>

namespace {

constexpr railmux::Tag tag = 1;
constexpr std::uint64_t last = ~std::uint64_t{0};
using Numbers = std::array<std::uint64_t, 24576>;  // 192 KiB: goes by rendezvous, over all rails

void check(const Numbers& numbers, std::uint64_t round) {
    if (numbers.front() == numbers.back() && (numbers.back() == round || numbers.back() == last)) return;
    throw railmux::Error(railmux::ErrorCode::protocol, "round " + std::to_string(round) + " is wrong");
}

// Rank 0 speaks first, so that it is the one that connects.
void exchange(railmux::Context& context, const std::filesystem::path& end) {
    const bool first = context.rank() == 0;
    const auto other = context.peer(first ? 1 : 0);
    Numbers numbers{};
    const auto room = std::as_writable_bytes(std::span(numbers));
    for (std::uint64_t round = 0; numbers.back() != last; ++round) {
        if (first) {
            numbers.fill(std::filesystem::exists(end) ? last : round);
            context.send(other, tag, room);
        }
        context.recv(other, tag, room);
        check(numbers, round);
        if (!first) context.send(other, tag, room);
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 2) return 2;
        railmux::Context context;
        exchange(context, argv[1]);
        return 0;
    } catch (const railmux::Error& error) {
        std::cerr << error.what() << '\n' << error.cure() << '\n';
        return 1;
    }
}

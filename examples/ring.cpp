// A token goes round a ring of processes; each adds its rank.
//
//   railmux run -n 8 example_ring
#include <railmux/context.hpp>

#include <cstdint>
#include <iostream>

#include "example.hpp"

namespace {

constexpr railmux::Tag token_tag = 1;
constexpr std::uint64_t laps = 3;

// Any number as a message: its bytes, in the order of this machine.
std::span<std::byte> bytes(std::uint64_t& number) { return std::as_writable_bytes(std::span(&number, 1)); }

std::uint64_t received(railmux::Context& context, railmux::Request& request, const std::uint64_t& value) {
    const auto status = context.wait(request);
    if (!status.ok()) throw railmux::Error(status.code, "the ring is broken: " + context.failure(status.peer));
    return value;
}

int run(railmux::Context& context) {
    const auto rank = context.rank();
    const auto size = context.size();
    const auto left = context.peer((rank + size - 1) % size);
    const auto right = context.peer((rank + 1) % size);
    std::uint64_t token = 0;
    for (std::uint64_t lap = 0; lap < laps; ++lap) {
        std::uint64_t arriving = 0;
        auto from_left = context.irecv(left, token_tag, bytes(arriving));
        // Rank 0 starts each lap: it sends first. Alone, it is its own neighbour.
        if (rank != 0) token = received(context, from_left, arriving);
        token += rank;
        context.send(right, token_tag, bytes(token));
        if (rank == 0) token = received(context, from_left, arriving);
    }
    if (rank == 0) std::cout << "after " << laps << " laps of " << size << " processes: " << token << '\n';
    const auto expected = laps * size * (size - 1) / 2;
    if (rank == 0 && token != expected) {
        std::cerr << "that is wrong: " << expected << " was expected\n";
        return 1;
    }
    return 0;
}

}  // namespace

int main() { return run_example(run); }

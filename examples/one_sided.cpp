// A queue of jobs without a master: rank 0 gives away the keys of a counter and of room for the results; each of the others
// draws a number, and puts what comes of it into its place.
//
//   railmux run -n 4 example_one_sided
#include <railmux/context.hpp>

#include <cstdint>
#include <iostream>
#include <numeric>
#include <vector>

#include "example.hpp"

namespace {

constexpr railmux::Tag key_tag = 1;
constexpr std::uint64_t jobs = 1000;

template <typename T>
std::span<std::byte> bytes(std::vector<T>& values) {
    return std::as_writable_bytes(std::span(values));
}

void check(const railmux::Status& status) {
    if (!status.ok()) throw railmux::Error(status.code, "one-sided: " + std::string(to_string(status.code)));
}

// Only waits: the others write into its memory.
void hold(railmux::Context& context) {
    std::vector<std::uint64_t> next(1);
    std::vector<std::uint64_t> results(jobs);
    const auto counter = context.register_memory(bytes(next));
    const auto room = context.register_memory(bytes(results), railmux::Rights::write);
    auto all_there = context.inotified(room, jobs);
    for (std::uint32_t rank = 1; rank < context.size(); ++rank) {
        context.send(context.peer(rank), key_tag, counter.key().bytes());
        context.send(context.peer(rank), key_tag, room.key().bytes());
    }
    check(context.wait(all_there));
    const auto sum = std::accumulate(results.begin(), results.end(), std::uint64_t{0});
    std::cout << jobs << " jobs by " << context.size() - 1 << " processes, sum of the squares " << sum << '\n';
    if (sum != (jobs - 1) * jobs * (2 * jobs - 1) / 6) {
        throw railmux::Error(railmux::ErrorCode::protocol, "the sum is wrong");
    }
    std::vector<std::byte> done(1);  // until the others have drawn their last number, the counter must stay
    for (std::uint32_t rank = 1; rank < context.size(); ++rank) context.recv(context.peer(rank), key_tag, done);
}

railmux::RemoteKey receive_key(railmux::Context& context, railmux::Peer from) {
    std::vector<std::byte> key(railmux::RemoteKey::size);
    context.recv(from, key_tag, key);
    return railmux::RemoteKey::from(key);
}

void work(railmux::Context& context) {
    const auto holder = context.peer(0);
    const auto counter = receive_key(context, holder);
    const auto room = receive_key(context, holder);
    for (;;) {
        const auto job = context.fetch_add(holder, {counter, 0}, std::uint64_t{1});
        if (job >= jobs) break;
        std::vector<std::uint64_t> square{job * job};
        // The buffer is free when the request ends; the notification comes when the bytes are in place.
        auto put = context.iput(holder, {room, job * sizeof job}, bytes(square), {.notify = true});
        check(context.wait(put));
    }
    context.flush(holder);  // throws if one was refused
    context.send(holder, key_tag, {});
}

int run(railmux::Context& context) {
    if (context.size() < 2) {
        std::cerr << "usage: railmux run -n 4 example_one_sided (at least 2)\n";
        return 2;
    }
    if (context.rank() == 0) {
        hold(context);
    } else {
        work(context);
    }
    return 0;
}

}  // namespace

int main() { return run_example(run); }

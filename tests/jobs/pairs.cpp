// The first half of a job's processes flood the other half, each its own one, all at once.
//
//   railmux run -n 4 --hosts A:2,B:2 job_pairs COUNT BYTES WINDOW [die]
//
// Every message's number is checked, and its last byte. Each sender says how much it sent, and from when to when by the
// machine's clock, so that what they reached together can be told. With `die` the first sender is killed half-way.
#include <railmux/context.hpp>

#include <signal.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr railmux::Tag start_tag = 1;
constexpr railmux::Tag data_tag = 2;
constexpr railmux::Tag end_tag = 3;
constexpr std::size_t warm_up = 16;  // messages, which bring up the links

struct Flood {
    std::uint64_t count = 0;
    std::size_t bytes = 0;
    std::size_t window = 0;
    bool die = false;
};

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

void send_all(railmux::Context& context, railmux::Peer to, const Flood& flood, std::uint64_t first, std::uint64_t end) {
    std::vector<std::vector<std::byte>> buffers(flood.window, std::vector<std::byte>(flood.bytes));
    std::vector<railmux::Request> requests(flood.window);
    for (auto i = first; i < end; ++i) {
        if (flood.die && context.rank() == 0 && i == flood.count / 2) ::raise(SIGKILL);
        auto& request = requests[i % flood.window];
        auto& buffer = buffers[i % flood.window];
        if (request.active() && !context.wait(request).ok()) throw std::runtime_error(context.failure(to));
        std::memcpy(buffer.data(), &i, sizeof i);
        buffer.back() = static_cast<std::byte>(i);
        request = context.isend(to, data_tag, buffer);
    }
    if (context.wait_all(requests) != railmux::ErrorCode::ok) throw std::runtime_error(context.failure(to));
}

void receive_all(railmux::Context& context, railmux::Peer from, const Flood& flood) {
    std::vector<std::vector<std::byte>> buffers(flood.window, std::vector<std::byte>(flood.bytes));
    std::vector<railmux::Request> requests(flood.window);
    const auto total = warm_up + flood.count;
    for (std::uint64_t i = 0; i < total + flood.window; ++i) {
        auto& request = requests[i % flood.window];
        auto& buffer = buffers[i % flood.window];
        if (request.active()) {
            const auto status = context.wait(request);
            if (!status.ok()) throw std::runtime_error(context.failure(from));
            std::uint64_t number = 0;
            std::memcpy(&number, buffer.data(), sizeof number);
            const auto expected = i - flood.window < warm_up ? i - flood.window : i - flood.window - warm_up;
            if (number != expected || buffer.back() != static_cast<std::byte>(number) || status.bytes != flood.bytes)
                throw std::runtime_error("message " + std::to_string(expected) + " is wrong or missing");
        }
        if (i < total) request = context.irecv(from, {data_tag}, buffer);
    }
    context.send(from, end_tag, {});
}

/// Returns on all senders at about the same time, when all have their links.
void start_together(railmux::Context& context, std::uint32_t senders) {
    const auto first = context.peer(0);
    if (context.rank() != 0) {
        context.send(first, start_tag, {});
        context.recv(first, start_tag, {});
        return;
    }
    for (std::uint32_t rank = 1; rank < senders; ++rank) context.recv(context.peer(rank), start_tag, {});
    for (std::uint32_t rank = 1; rank < senders; ++rank) context.send(context.peer(rank), start_tag, {});
}

void send_flood(railmux::Context& context, std::uint32_t senders, const Flood& flood) {
    const auto to = context.peer(context.rank() + senders);
    auto first = flood;
    first.die = false;
    send_all(context, to, first, 0, warm_up);
    start_together(context, senders);
    const auto start = now_ns();
    send_all(context, to, flood, 0, flood.count);
    context.recv(to, end_tag, {});
    std::cout << context.rank() << ' ' << flood.count * flood.bytes << ' ' << start << ' ' << now_ns() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 4 && argc != 5) return 2;
        const Flood flood{.count = std::stoull(argv[1]),
                          .bytes = std::max<std::size_t>(std::stoull(argv[2]), sizeof(std::uint64_t) + 1),
                          .window = std::max<std::size_t>(std::stoull(argv[3]), 1),
                          .die = argc == 5};
        railmux::Context context;
        const auto senders = context.size() / 2;
        if (context.rank() < senders) {
            send_flood(context, senders, flood);
        } else {
            receive_all(context, context.peer(context.rank() - senders), flood);
        }
        return 0;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}

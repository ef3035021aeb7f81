// What a member of the job, who knows the key, can do to the job's server and to other members by hostile messages: the
// handshake is real, the stream after it is the input. The first byte chooses the side, the pieces, and whether the job is one
// that others may join.
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bootstrap/channel.hpp"
#include "bootstrap/roster.hpp"

using namespace railmux;
using namespace railmux::bootstrap;

namespace {

void check(bool holds) {
    if (!holds) __builtin_trap();
}

std::vector<std::byte> take_output(Channel& channel) { return std::exchange(channel.output(), {}); }

void shake_hands(Channel& client, Channel& server) {
    server.receive(take_output(client));
    client.receive(take_output(server));
    server.receive(take_output(client));
    client.receive(take_output(server));
    check(client.state() == Channel::State::open && server.state() == Channel::State::open);
}

void feed(Channel& channel, std::span<const std::byte> bytes, std::size_t step, Roster& roster) {
    std::uint64_t connection = 0;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        channel.receive(bytes.subspan(at, std::min(step, bytes.size() - at)));
        for (; !channel.inbox().empty(); channel.inbox().pop_front()) {
            const auto& message = channel.inbox().front();
            check(message.bytes.size() <= max_message);
            if (message.type == MessageType::over) {  // never taken by a server: here it is a connection that ends
                roster.lost(message.id % 3);
            } else {
                roster.take(connection++ % 3, message);
            }
        }
    }
    roster.lost(1);
    roster.end();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {  // NOLINT: libFuzzer's name
    if (size == 0) return 0;
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
    Channel client(Channel::Role::client, "key");
    Channel server(Channel::Role::server, "key");
    shake_hands(client, server);
    Roster roster({.size = 16, .open = (data[0] & 2) != 0}, [&](auto connection, auto type, auto, auto value) {
        check(connection < 3 && value.size() <= max_message && type <= last_message_type);
    });
    const std::size_t step = std::size_t{data[0]} / 2 + 1;
    feed((data[0] & 1) != 0 ? client : server, bytes, step, roster);
    check(roster.size() >= 16 && roster.size() <= Roster::most_ranks);
    return 0;
}

// The start-up channel without sockets: who gets in, who does not, and what hostile bytes do.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "bootstrap/channel.hpp"
#include "unit/bootstrap_bytes.hpp"

using namespace railmux;
using namespace railmux::bootstrap;
using railmux::bootstrap::test::bytes;

namespace {

using State = Channel::State;

std::vector<std::byte> take_output(Channel& channel) { return std::exchange(channel.output(), {}); }

/// Carries everything across until both are silent; in pieces of `step` bytes.
void converse(Channel& a, Channel& b, std::size_t step = 1 << 20) {
    const auto carry = [&](Channel& from, Channel& to) {
        const auto all = take_output(from);
        for (std::size_t at = 0; at < all.size(); at += step) {
            to.receive(std::span(all).subspan(at, std::min(step, all.size() - at)));
        }
        return !all.empty();
    };
    for (bool any = true; any;) {
        any = carry(a, b);
        any = carry(b, a) || any;
    }
}

struct Two {
    explicit Two(std::string_view client_key = "key", std::string_view server_key = "key")
        : client(Channel::Role::client, client_key), server(Channel::Role::server, server_key) {}
    Channel client;
    Channel server;
};

std::vector<std::byte> message(std::uint8_t type, std::uint32_t id, std::uint32_t length, std::size_t present) {
    base::Writer out;
    out.write(type).write(id).write(length).append(std::vector<std::byte>(present));
    return std::move(out).take();
}

}  // namespace

TEST_CASE("channel: both know the key, and messages pass both ways", "[channel]") {
    const auto step = GENERATE(std::size_t{1}, std::size_t{7}, std::size_t{1} << 20);
    Two two;
    two.client.send(MessageType::put, 7, bytes("early"));  // waits for the proof
    converse(two.client, two.server, step);
    two.server.send(MessageType::value, 9, bytes("answer"));
    two.client.send(MessageType::leave, 0, {});
    converse(two.client, two.server, step);
    REQUIRE(two.client.state() == State::open);
    REQUIRE(two.server.state() == State::open);
    REQUIRE(two.server.inbox().size() == 2);
    CHECK(two.server.inbox()[0].type == MessageType::put);
    CHECK(two.server.inbox()[0].id == 7);
    CHECK(two.server.inbox()[0].bytes == bytes("early"));
    CHECK(two.server.inbox()[1].type == MessageType::leave);
    REQUIRE(two.client.inbox().size() == 1);
    CHECK(two.client.inbox()[0].bytes == bytes("answer"));
}

TEST_CASE("channel: an empty key lets in whoever has none either", "[channel]") {
    Two two("", "");
    converse(two.client, two.server);
    CHECK(two.client.state() == State::open);
    CHECK(two.server.state() == State::open);
}

TEST_CASE("channel: differing keys are called that on both sides", "[channel]") {
    const auto [client, server] =
        GENERATE(table<std::string, std::string>({{"key", "other"}, {"", "key"}, {"key", ""}, {"key", "keykey"}}));
    Two two(client, server);
    two.client.send(MessageType::put, 1, bytes("secret"));
    converse(two.client, two.server);
    CHECK(two.client.failure() == ErrorCode::wrong_key);
    CHECK(two.server.failure() == ErrorCode::wrong_key);
    CHECK(two.server.inbox().empty());
}

TEST_CASE("channel: another wire version is named with ours, on both sides", "[channel]") {
    auto theirs = base::Writer()
                      .append(bytes("RMXBOOT1"))
                      .write(std::uint16_t{9})
                      .write(std::uint16_t{0})
                      .append(std::vector<std::byte>(16));
    Two two;
    two.server.receive(theirs.view());
    CHECK(two.server.failure() == ErrorCode::wrong_version);
    CHECK(two.server.failure_text() ==
          "it speaks version 9 of the railmux start-up protocol, this is version " + std::to_string(channel_version));
    const auto answer = take_output(two.server);  // tells the other side our version
    REQUIRE(answer.size() >= 10);
    CHECK(base::load<std::uint16_t>(answer.data() + 8) == channel_version);
    two.client.receive(theirs.view());
    CHECK(two.client.failure() == ErrorCode::wrong_version);
}

TEST_CASE("channel: what is not railmux is refused at the first wrong byte", "[channel]") {
    const std::string text = GENERATE("GET / HTTP/1.1\r\n", "R\r\n", "RMXBOOT2........", "\x16\x03\x01");
    const auto role = GENERATE(Channel::Role::client, Channel::Role::server);
    Channel channel(role, "key");
    channel.receive(bytes(text));
    CHECK(channel.failure() == ErrorCode::protocol);
}

TEST_CASE("channel: a recorded conversation cannot be played again", "[channel]") {
    Two two;
    const auto greeting = take_output(two.client);
    two.server.receive(greeting);
    two.client.receive(take_output(two.server));
    const auto proof = take_output(two.client);
    Channel again(Channel::Role::server, "key");
    again.receive(greeting);
    again.receive(proof);
    CHECK(again.failure() == ErrorCode::wrong_key);
}

TEST_CASE("channel: a client's own words do not answer it", "[channel]") {
    Channel client(Channel::Role::client, "key");
    auto echo = take_output(client);
    echo.resize(echo.size() + 32);
    client.receive(echo);
    CHECK(client.failure() == ErrorCode::wrong_key);

    // Nor does another client's proof for the same nonces: the roles are part of what is proved.
    Channel first(Channel::Role::client, "key");
    Channel server(Channel::Role::server, "key");
    server.receive(take_output(first));
    auto reply = take_output(server);
    std::vector<std::byte> server_proof(reply.end() - 32, reply.end());
    server.receive(server_proof);
    CHECK(server.failure() == ErrorCode::wrong_key);
}

TEST_CASE("channel: a handshake cut off anywhere opens nothing", "[channel]") {
    Two whole;
    const auto greeting = take_output(whole.client);
    for (std::size_t length = 0; length < greeting.size(); ++length) {
        Channel server(Channel::Role::server, "key");
        server.receive(std::span(greeting).first(length));
        CHECK(server.state() == State::greeting);
        CHECK(server.output().empty());
    }
}

TEST_CASE("channel: malformed messages close it and deliver nothing", "[channel]") {
    Two two;
    converse(two.client, two.server);
    SECTION("a length above the limit, before the bytes are there") {
        two.server.receive(message(2, 1, max_message + 1, 0));
    }
    SECTION("the greatest length there is") { two.server.receive(message(2, 1, ~std::uint32_t{0}, 100)); }
    SECTION("type zero") { two.server.receive(message(0, 1, 0, 0)); }
    SECTION("an unknown type") { two.server.receive(message(99, 1, 0, 0)); }
    CHECK(two.server.failure() == ErrorCode::protocol);
    CHECK(two.server.inbox().empty());
    two.server.receive(message(2, 1, 0, 0));  // nothing is heard after a failure
    CHECK(two.server.inbox().empty());
}

TEST_CASE("channel: the longest message passes, a longer one is refused where it is made", "[channel]") {
    Two two;
    converse(two.client, two.server);
    const std::vector<std::byte> longest(max_message);
    two.client.send(MessageType::put, 1, longest);
    converse(two.client, two.server);
    REQUIRE(two.server.inbox().size() == 1);
    CHECK(two.server.inbox()[0].bytes.size() == max_message);
    CHECK_THROWS_AS(two.client.send(MessageType::put, 1, std::vector<std::byte>(max_message + 1)), Error);
}

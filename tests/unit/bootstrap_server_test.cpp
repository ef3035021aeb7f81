// Knocking at a server over real sockets: contacts are exchanged, strangers harm nothing.
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/bytes.hpp"
#include "bootstrap/client.hpp"
#include "bootstrap/server.hpp"
#include "unit/bootstrap_bytes.hpp"

using namespace railmux;
using namespace railmux::bootstrap;
using railmux::bootstrap::test::bytes;

namespace {

/// A process's door, polled by a thread of its own, which answers contacts with "server".
class Door {
public:
    explicit Door(std::string key, base::Clock clock = base::now_ns) : server_(std::move(key), log_, clock) {
        port_ = server_.listen("127.0.0.1:0");
        thread_ = std::thread([this] {
            while (!over_) {
                pollfd wait{server_.descriptor(), POLLIN, 0};
                ::poll(&wait, 1, 20);
                server_.poll([this](Connection& from, const Message& message) {
                    const std::lock_guard lock(mutex_);
                    contacts_.push_back(message.bytes);
                    from.channel.send(MessageType::contact, 0, bytes("server"));
                });
            }
        });
    }
    ~Door() {
        over_ = true;
        thread_.join();
    }
    [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(port_); }
    [[nodiscard]] std::vector<std::vector<std::byte>> contacts() {
        const std::lock_guard lock(mutex_);
        return contacts_;
    }

private:
    base::Logger log_{base::LogLevel::off};
    Server server_;
    std::uint16_t port_ = 0;
    std::atomic<bool> over_ = false;
    std::mutex mutex_;
    std::vector<std::vector<std::byte>> contacts_;
    std::thread thread_;
};

/// Something else that listens: says `words` to whoever connects, then reads on.
class Stranger {
public:
    explicit Stranger(std::vector<std::byte> words) : listener_(listen_at("127.0.0.1:0")) {
        thread_ = std::thread([this, words = std::move(words)] {
            std::vector<base::FileDescriptor> connections;
            while (!over_) {
                pollfd wait{listener_.front().socket.get(), POLLIN, 0};
                if (::poll(&wait, 1, 10) <= 0) continue;
                connections.emplace_back(::accept(listener_.front().socket.get(), nullptr, nullptr));
                ::send(connections.back().get(), words.data(), words.size(), MSG_NOSIGNAL);
            }
        });
    }
    ~Stranger() {
        over_ = true;
        thread_.join();
    }
    [[nodiscard]] std::string where() const { return "127.0.0.1:" + std::to_string(listener_.front().port); }

private:
    std::vector<ListeningSocket> listener_;
    std::atomic<bool> over_ = false;
    std::thread thread_;
};

Error knock_fails(const std::string& where, std::string_view key, base::Nanoseconds limit = 10 * base::second) {
    try {
        (void)exchange_contact(where, bytes("client"), key, base::now_ns() + limit);
    } catch (const Error& error) {
        return error;
    }
    return Error(ErrorCode::ok, "no error");
}

std::vector<std::byte> knock(const Door& door, std::string_view text) {
    return exchange_contact(door.where(), bytes(text), "key", base::now_ns() + 10 * base::second);
}

}  // namespace

TEST_CASE("server: contacts are exchanged", "[server]") {
    Door door("key");
    for (const auto* text : {"a", "b", "c"}) CHECK(knock(door, text) == bytes("server"));
    CHECK(door.contacts() == std::vector{bytes("a"), bytes("b"), bytes("c")});
}

TEST_CASE("server: many knock at the same time", "[server]") {
    Door door("key", [] { return base::second; });  // however long they take: nobody's time is over
    std::vector<std::thread> clients;
    std::atomic<int> answered = 0;
    for (int i = 0; i < 100; ++i) {
        clients.emplace_back([&] {
            try {
                answered += knock(door, "x") == bytes("server") ? 1 : 0;
            } catch (const Error&) {  // it counts as not answered
            }
        });
    }
    for (auto& client : clients) client.join();
    CHECK(answered == 100);
    CHECK(door.contacts().size() == 100);
}

TEST_CASE("server: who knocks at a process that looks once in a long while is let in", "[server]") {
    static base::Nanoseconds now = 0;
    now = base::second;
    base::Logger log{base::LogLevel::off};
    Server server("key", log, [] { return now; });
    const auto port = server.listen("127.0.0.1:0");
    std::atomic<bool> answered = false;
    std::thread client([&] {
        const auto where = "127.0.0.1:" + std::to_string(port);
        const auto limit = base::now_ns() + 30 * base::second;
        answered = exchange_contact(where, bytes("client"), "key", limit) == bytes("server");
    });
    const auto on_message = [](Connection& from, const Message&) {
        from.channel.send(MessageType::contact, 0, bytes("server"));
    };
    const auto limit = base::now_ns() + 10 * base::second;
    while (!answered && base::now_ns() < limit) {
        pollfd wait{server.descriptor(), POLLIN, 0};
        ::poll(&wait, 1, 100);
        server.poll(on_message);
        now += 3 * base::second;  // it computes
    }
    client.join();
    CHECK(answered);
}

TEST_CASE("server: another key is told apart from a network fault", "[server]") {
    Door door("key");
    const auto error = knock_fails(door.where(), "other");
    CHECK(error.code() == ErrorCode::wrong_key);
    CHECK_THAT(error.what(), Catch::Contains(door.where()) && Catch::Contains("keys differ"));
    CHECK_THAT(error.cure(), Catch::Contains("RAILMUX_JOB_KEY"));
    CHECK(door.contacts().empty());
    CHECK(knock(door, "a") == bytes("server"));
}

TEST_CASE("server: another version is told, with both numbers", "[server]") {
    base::Writer greeting;
    greeting.append(bytes("RMXBOOT1")).write(std::uint16_t{7});
    auto first = std::move(greeting).take();
    first.resize(60);  // the rest of a greeting: zeros
    Stranger stranger(std::move(first));
    const auto error = knock_fails(stranger.where(), "key");
    CHECK(error.code() == ErrorCode::wrong_version);
    CHECK_THAT(error.what(),
               Catch::Contains("version 7") && Catch::Contains("version " + std::to_string(channel_version)));
    CHECK_THAT(error.cure(), Catch::Contains("one release"));
}

TEST_CASE("server: something else listens there", "[server]") {
    Stranger stranger(bytes("220 mail.example ESMTP\r\n"));
    CHECK(knock_fails(stranger.where(), "key").code() == ErrorCode::protocol);
}

TEST_CASE("server: somebody who says nothing costs the time limit and no more", "[server]") {
    Stranger stranger({});
    const auto error = knock_fails(stranger.where(), "key", base::second / 5);
    CHECK(error.code() == ErrorCode::unreachable);
    CHECK_THAT(error.what(), Catch::Contains("said nothing"));
}

TEST_CASE("server: garbage closes its own connection only", "[server]") {
    Door door("key");
    std::minstd_rand random(7);
    for (int i = 0; i < 200; ++i) {
        const auto socket = connect_to(door.where(), base::now_ns() + 10 * base::second);
        std::vector<std::byte> garbage(random() % 3000);
        for (auto& byte : garbage) byte = static_cast<std::byte>(random());
        if (i % 3 == 0) {
            const auto magic = bytes("RMXBOOT1\x01");
            std::copy_n(magic.begin(), std::min(magic.size(), garbage.size()), garbage.begin());
        }
        ::send(socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    }
    CHECK(knock(door, "a") == bytes("server"));
    CHECK(door.contacts().size() == 1);
}

TEST_CASE("server: a crowd that says nothing keeps nobody out for long", "[server]") {
    Door door("key");
    std::vector<base::FileDescriptor> crowd;
    for (int i = 0; i < 150; ++i) crowd.push_back(connect_to(door.where(), base::now_ns() + 10 * base::second));
    const auto start = base::now_ns();
    CHECK(knock(door, "a") == bytes("server"));
    CHECK(base::now_ns() - start < 5 * base::second);
}

TEST_CASE("server: a stranger's time ends after two seconds", "[server]") {
    Door door("key");
    const auto stranger = connect_to(door.where(), base::now_ns() + 10 * base::second);
    const auto start = base::now_ns();
    pollfd wait{stranger.get(), POLLIN, 0};
    REQUIRE(::poll(&wait, 1, 20'000) == 1);  // closed
    CHECK(base::now_ns() - start > base::second);
    CHECK(base::now_ns() - start < 10 * base::second);
}

TEST_CASE("server: one that sends without end does not hold up the others", "[server]") {
    Door door("key");
    std::atomic<bool> over = false;
    std::thread flooder([&] {
        const std::vector<std::byte> junk(1 << 16);
        while (!over) {
            try {
                const auto socket = connect_to(door.where(), base::now_ns() + base::second);
                ::send(socket.get(), junk.data(), junk.size(), MSG_NOSIGNAL);
            } catch (const Error&) {
            }
        }
    });
    for (int i = 0; i < 20; ++i) CHECK(knock(door, "a") == bytes("server"));
    over = true;
    flooder.join();
}

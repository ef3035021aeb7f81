// Encrypted tcp rails: who gets in, what can be seen and changed on the way, and what strangers get.
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "captured.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/tls.hpp"
#include "transports/tcp/transport.hpp"
#include "transports/tcp/wire.hpp"
#include "unit/tcp_hosts.hpp"

using namespace railmux;
using namespace railmux::transports;
using test::captured;
using test::Host;
using test::Tapped;
using test::until;
using test::Wire;

namespace {

const std::string secret = "what nobody on the way should read";

std::vector<std::byte> payload_of(std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

bool contains(const std::vector<std::byte>& all, const std::vector<std::byte>& part) {
    return std::ranges::search(all, part).begin() != all.end();
}

/// What becomes of a host that connects to another one; what that one logs is returned.
std::string try_to_connect(Host& from, Host& to) {
    return captured([&] {
        from.link = from.rail->connect(to.rail->address(), Host::hello);
        until(
            [&] {
                from.look();
                to.look();
            },
            [&] { return from.down || from.up; });
        for (int i = 0; i < 200; ++i) to.look();
    });
}

}  // namespace

TEST_CASE("tcp: payload can be read on the way in plain text, and not where it is encrypted", "[tcp][encryption]") {
    const std::string key = GENERATE("", "the job's key");
    Tapped t(key);
    const auto payload = payload_of(secret);
    t.a.send(payload);
    t.b.send(payload);
    t.run([&] { return t.a.received == payload && t.b.received == payload; });
    REQUIRE(t.wire.connections.size() == 1);
    CHECK(contains(t.wire.connections.front().there.seen, payload) == key.empty());
    CHECK(contains(t.wire.connections.front().back.seen, payload) == key.empty());
    CHECK(contains(t.wire.connections.front().there.seen, Host::hello) == key.empty());
}

TEST_CASE("tcp: who encrypts and who does not refuse each other, and both say so", "[tcp][encryption]") {
    const bool connector_encrypts = GENERATE(false, true);
    Host a(connector_encrypts ? "the job's key" : "");
    Host b(connector_encrypts ? "" : "the job's key");
    const auto logged = try_to_connect(a, b);
    CHECK(a.down);
    CHECK_FALSE(a.up);
    CHECK(a.code == ErrorCode::wrong_version);  // nobody waits for it to become right
    CHECK(a.cause == tcp::encryption_differs(connector_encrypts));
    CHECK(b.requests == 0);
    CHECK(logged.find(tcp::encryption_differs(!connector_encrypts)) != std::string::npos);
}

TEST_CASE("tcp: who has another key does not get in, and both say so", "[tcp][encryption]") {
    Host a("a key");
    Host b("another key");
    const auto logged = try_to_connect(a, b);
    CHECK(a.code == ErrorCode::wrong_key);
    CHECK(a.cause == "the job keys differ; give both sides the same job.key (RAILMUX_JOB_KEY)");
    CHECK_FALSE(a.up);
    CHECK(b.requests == 0);
    CHECK(logged.find("the job keys differ") != std::string::npos);
}

TEST_CASE("tcp: without a key nothing can be encrypted", "[tcp][encryption]") {
    Config config;
    config.set("tcp.encryption", "on");
    base::Logger log;
    const auto transport = tcp::make_transport({config, log});
    try {
        static_cast<void>(transport->scan());
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_config);
        CHECK(error.cure().find("RAILMUX_JOB_KEY") != std::string::npos);
    }
    const auto devices = tcp::make_transport({config, log, true})->scan();  // a person looks at what there is
    const auto found = std::ranges::find(devices, "lo", &RailInfo::device);
    REQUIRE(found != devices.end());
    CHECK_FALSE(found->usable);
    CHECK(found->reason.find("no job key") != std::string::npos);
}

TEST_CASE("tcp: a bit changed on the way ends the link, and nothing false arrives", "[tcp][encryption]") {
    Tapped t("the job's key");
    std::size_t passed = 0;
    t.wire.change = [&](Wire::Flow& flow, std::span<std::byte> bytes) {
        if (&flow != &t.wire.connections.front().there) return;
        if (passed <= 30'000 && passed + bytes.size() > 30'000) bytes[30'000 - passed] ^= std::byte{1};
        passed += bytes.size();
    };
    const std::vector<std::byte> payload(60'000, std::byte{42});
    t.a.send(payload);
    t.run([&] { return t.a.down && t.b.down; });
    CHECK(t.b.received.empty());
    CHECK(t.b.cause.find("its bytes were changed on the way") == 0);
}

TEST_CASE("tcp: an encrypted connection that is cut is told apart from one that was closed", "[tcp][encryption]") {
    Tapped t("the job's key");
    const bool cut = GENERATE(true, false);
    if (cut) {
        ::shutdown(t.wire.connections.front().far.get(), SHUT_WR);
    } else {
        t.a.rail->disconnect(t.a.link);
    }
    t.run([&] { return t.b.down; });
    CHECK((t.b.cause == "closed by the other side") == !cut);
    CHECK((t.b.cause.find("without goodbye") != std::string::npos) == cut);
}

TEST_CASE("tcp: what was recorded of a connection gets nobody in", "[tcp][encryption]") {
    Tapped t("the job's key");
    t.a.send(payload_of(secret));
    t.run([&] { return t.b.received.size() == secret.size(); });
    const auto recorded = t.wire.connections.front().there.seen;
    const auto again = test::connected_to(t.b.endpoint());
    REQUIRE(::send(again.get(), recorded.data(), recorded.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(recorded.size()));
    const auto logged = captured([&] {
        until([&] { t.b.look(); },
              [&] {
                  std::array<std::byte, 512> bytes;
                  const auto got = ::recv(again.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
                  return got == 0 || (got < 0 && errno == ECONNRESET);
              });
    });
    CHECK(logged.find("a replay") != std::string::npos);
    CHECK(t.b.requests == 1);
    CHECK(t.b.received.size() == secret.size());
    CHECK_FALSE(t.b.down);
}

namespace {

/// A certificate that somebody made for himself.
void use_own_certificate(SSL_CTX* context) {
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* certificate = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_sign(certificate, key, EVP_sha256());
    REQUIRE(SSL_CTX_use_certificate(context, certificate) == 1);
    REQUIRE(SSL_CTX_use_PrivateKey(context, key) == 1);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

}  // namespace

TEST_CASE("tcp: a certificate is no key", "[tcp][encryption]") {
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
    use_own_certificate(context.get());
    Host host("the job's key");
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), SSL_free);
    SECTION("of who is connected to") {
        auto name = test::loopback_name(0);
        socklen_t size = sizeof name;
        const base::FileDescriptor door(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::bind(door.get(), reinterpret_cast<sockaddr*>(&name), size) == 0);
        REQUIRE(::listen(door.get(), 1) == 0);
        REQUIRE(::getsockname(door.get(), reinterpret_cast<sockaddr*>(&name), &size) == 0);
        auto address = *tcp::RailAddress::parse(host.rail->address());
        address.endpoints.front().port = ::ntohs(name.sin_port);
        host.link = host.rail->connect(address.encode(), Host::hello);
        const base::FileDescriptor peer(::accept4(door.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        SSL_set_fd(ssl.get(), peer.get());
        SSL_set_accept_state(ssl.get());
        until(
            [&] {
                SSL_do_handshake(ssl.get());
                host.look();
            },
            [&] { return host.down; });
        CHECK(host.cause.find("TLS: ") == 0);
    }
    SECTION("of who connects") {
        const auto guest = test::connected_to(host.endpoint());
        SSL_set_fd(ssl.get(), guest.get());
        SSL_set_connect_state(ssl.get());
        REQUIRE(SSL_set1_groups_list(ssl.get(), "P-256") == 1);
        const auto logged = captured([&] {
            timeval soon{.tv_sec = 0, .tv_usec = 1000};
            ::setsockopt(guest.get(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
            until([&] { host.look(); },
                  [&] {
                      const int result = SSL_do_handshake(ssl.get());
                      return result == 1 || SSL_get_error(ssl.get(), result) == SSL_ERROR_SSL;
                  });
        });
        CHECK(SSL_is_init_finished(ssl.get()) == 0);
        CHECK(logged.find(" closed: ") != std::string::npos);
    }
    CHECK_FALSE(host.up);
    CHECK(host.requests == 0);
}

TEST_CASE("tcp: of strangers only those are heard that begin as TLS does", "[tcp][encryption][strangers]") {
    Host host("the job's key");
    const auto begin = [&](std::initializer_list<int> bytes) {
        std::vector<std::byte> text;
        for (const int byte : bytes) text.push_back(static_cast<std::byte>(byte));
        text.resize(std::max<std::size_t>(text.size(), 1));
        auto socket = test::connected_to(host.endpoint());
        REQUIRE(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size()));
        return socket;
    };
    const auto closed = [&](std::initializer_list<int> bytes) {
        const auto socket = begin(bytes);
        captured([&] {
            until([&] { host.look(); },
                  [&] {
                      std::byte byte{};
                      const auto got = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT);
                      return got == 0 || (got < 0 && errno == ECONNRESET);
                  });
        });
        return true;
    };
    CHECK(closed({'G', 'E', 'T', ' '}));                      // another protocol
    CHECK(closed({22, 2}));                                   // what TLS never was
    CHECK(closed({22, 3, 1, 2, 0}));                          // a record larger than a peer's
    CHECK(closed({22, 3, 1, 0, 100, 1, 0, 0, 97}));           // a message that goes beyond its record
    CHECK(closed({22, 3, 1, 0, 5, 2, 0, 0, 1, 0}));           // no ClientHello
    CHECK(closed({21, 3, 3, 0, 2, 1, 0}));                    // an alert
    CHECK(closed({22, 3, 1, 0, 8, 1, 0, 0, 4, 1, 2, 3, 4}));  // a ClientHello that is none
    CHECK(host.requests == 0);
}

TEST_CASE("tcp: who has the key gets in past any number of strangers that say nothing, or half a ClientHello",
          "[tcp][encryption][strangers]") {
    Host a("the job's key");
    Host b("the job's key");
    std::vector<base::FileDescriptor> silent;
    const std::array<unsigned char, 11> half{22, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3};
    captured([&] {
        for (int i = 0; i < 300; ++i) {
            silent.push_back(test::connected_to(b.endpoint()));
            if (i % 2 == 1) ::send(silent.back().get(), half.data(), half.size(), MSG_NOSIGNAL);
            b.look();
        }
        a.link = a.rail->connect(b.rail->address(), Host::hello);
        until(
            [&] {
                a.look();
                b.look();
            },
            [&] { return a.up && b.up; });
    });
    CHECK(b.requests == 1);
    CHECK_FALSE(b.down);
}

TEST_CASE("tls: both directions get new keys after so many records, and go on", "[tcp][encryption]") {
    std::array<int, 2> pair{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()) == 0);
    const base::FileDescriptor near(pair[0]);
    const base::FileDescriptor far(pair[1]);
    tcp::TlsContext context("the job's key", 4);
    tcp::Tls a(context, tcp::Tls::Side::connector, near.get());
    tcp::Tls b(context, tcp::Tls::Side::acceptor, far.get());
    a.give({});
    b.give({});
    until([] {},
          [&] {
              const auto one = a.handshake();
              return b.handshake() == tcp::Tls::Step::done && one == tcp::Tls::Step::done;
          });
    a.read_ahead();
    b.read_ahead();
    for (int i = 0; i < 50; ++i) {
        std::array<char, 5> text{'a', 'b', 'c', 'd', static_cast<char>(i)};
        std::array<char, tcp::Tls::most_read> got{};
        for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
            // In three pieces, which make one record.
            const std::array<iovec, 3> pieces{iovec{text.data(), 1}, iovec{text.data() + 1, 0},
                                              iovec{text.data() + 1, 4}};
            REQUIRE(from->write(pieces) == 5);
            const iovec room{got.data(), got.size()};
            REQUIRE(to->read({&room, 1}) == 5);
            REQUIRE(std::ranges::equal(text, std::span(got).first(5)));
            REQUIRE(to->read({&room, 1}) == -1);
            REQUIRE(errno == EAGAIN);
        }
    }
}

// Encrypted contexts: what somebody on the way changes costs a link, and no message.
#include <optional>
#include <thread>
#include <vector>

#include "rails/process_address.hpp"
#include "tcp_wire.hpp"

#include "engine/pair.hpp"

using namespace railmux;
using test::pattern;

namespace {

Config encrypted_rails() {
    auto config = test::two_rails();
    config.set("tcp.encryption", "on").set("job.key", "the job's key").set("tcp.families", "ipv4").set("log", "off");
    return config;
}

}  // namespace

TEST_CASE("encryption: a rail whose bytes are changed on the way is given up for the other, and comes back",
          "[engine]") {
    std::optional<Context> a(std::in_place, encrypted_rails());
    std::optional<Context> b(std::in_place, encrypted_rails());
    auto address = *rails::ProcessAddress::parse(b->address());
    REQUIRE(address.rails.front().transport == "tcp");
    auto& first = address.rails.front().address;
    test::Wire wire(transports::tcp::RailAddress::parse(first)->endpoints.front());
    first = wire.instead_of(first);
    const Peer to_b = a->add_peer(address.encode());
    // The first two connections over the wire are spoilt once they have carried something.
    constexpr std::size_t spoilt = 2;
    wire.change = [&](test::Wire::Flow& flow, std::span<std::byte> bytes) {
        if (wire.connections.size() <= spoilt && flow.seen.size() > 20'000) bytes.front() ^= std::byte{4};
    };
    const auto until = [&](auto holds) {
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (!holds()) {
            a->progress();
            b->progress();
            wire.pump();
            if (std::chrono::steady_clock::now() > limit) FAIL("not within 30 s");
        }
    };
    for (unsigned round = 0; round < 3 || wire.connections.size() <= spoilt; ++round) {
        for (const std::size_t size : {8UL, 3'000UL, 16'384UL, 300'000UL}) {
            const auto data = pattern(size, round + 1);
            std::vector<std::byte> got(size);
            auto sent = a->isend(to_b, 7, data);
            auto received = b->irecv(any_source, 7, got);
            std::optional<Status> sending;
            std::optional<Status> receiving;
            until([&] {
                if (!sending) sending = a->test(sent);
                if (!receiving) receiving = b->test(received);
                return sending && receiving;
            });
            REQUIRE(sending->ok());
            REQUIRE(receiving->ok());
            CHECK(test::same(got, data));
        }
    }
    std::thread other([&] { a.reset(); });  // each waits for the other's goodbye
    b.reset();
    other.join();
}

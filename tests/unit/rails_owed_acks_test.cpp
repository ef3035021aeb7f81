// Acknowledgements that are owed: when they go by themselves.
#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "rails/owed_acks.hpp"

namespace owed_acks {  // its names are its own: tests of a layer are compiled together

using railmux::base::never;
using railmux::rails::OwedAcks;
using railmux::rails::Session;

struct Peers {
    /// Those that an acknowledgement is sent to.
    std::vector<std::uint32_t> run(railmux::base::Nanoseconds now) {
        std::vector<std::uint32_t> sent;
        next = acks.run(
            now, [&](std::uint32_t peer) { return gone[peer] ? nullptr : &to[peer]; },
            [&](std::uint32_t peer) {
                sent.push_back(peer);
                to[peer].told_all();
            });
        return sent;
    }

    OwedAcks acks{{.delay = 100, .credit_report = 16}};
    std::array<OwedAcks::To, 3> to{};
    std::array<bool, 3> gone{};
    railmux::base::Nanoseconds next = never;
};

using Sent = std::vector<std::uint32_t>;

TEST_CASE("an acknowledgement waits for something to go with, and goes by itself if nothing does", "[rails]") {
    Peers peers;
    peers.to[1].frames = 1;
    CHECK(peers.acks.note(1, peers.to[1], 1000));
    CHECK(peers.to[1].due == 1100);
    CHECK(!peers.acks.note(1, peers.to[1], 1050));  // the first one's time counts
    CHECK(peers.run(1099).empty());
    CHECK(peers.next == 1100);
    CHECK(peers.run(1100) == Sent{1});
    CHECK(peers.next == never);
    CHECK(!peers.to[1].any());

    // Another frame told it: it is owed again with the next, and is listed by then.
    peers.to[1].frames = 1;
    CHECK(peers.acks.note(1, peers.to[1], 2000));
    peers.to[1].told();
    peers.to[1].frames = 1;
    CHECK(!peers.acks.note(1, peers.to[1], 2010));
    CHECK(peers.run(2100).empty());
    CHECK(peers.next == 2110);
    CHECK(peers.run(2110) == Sent{1});
}

TEST_CASE("what has been told is not told by itself", "[rails]") {
    Peers peers;
    peers.to[0].frames = 3;
    CHECK(peers.acks.note(0, peers.to[0], 0));
    peers.to[0].told();
    CHECK(peers.run(100).empty());
    CHECK(!peers.to[0].listed);
    peers.to[0].frames = 1;
    CHECK(peers.acks.note(0, peers.to[0], 200));
    CHECK(peers.run(300) == Sent{0});
}

TEST_CASE("what came ahead of others is told by itself, whatever goes with other frames", "[rails]") {
    Peers peers;
    auto& to = peers.to[0];
    const auto comes = [&](bool missing, railmux::base::Nanoseconds now) {
        ++to.frames;
        static_cast<void>(peers.acks.note(0, to, now));
        to.came(missing);
    };
    comes(true, 1000);
    to.told();
    CHECK(to.any());
    comes(true, 1050);
    to.told();
    CHECK(peers.run(1099).empty());
    CHECK(peers.run(1100) == Sent{0});  // when the first was due
    CHECK(!to.any());

    // What was missing came in time: another frame tells all.
    comes(true, 2000);
    comes(false, 2050);
    to.told();
    CHECK(!to.any());
    CHECK(peers.run(2100).empty());
}

TEST_CASE("much that is owed goes at the next look, and so does credit", "[rails]") {
    Peers peers;
    peers.to[0].frames = Session::window / 16;
    CHECK(peers.acks.note(0, peers.to[0], 1000));
    peers.to[1].consumed = 15;
    CHECK(peers.acks.note(1, peers.to[1], 1000));
    CHECK(peers.run(1000) == Sent{0});
    CHECK(peers.next == 1100);
    peers.to[1].consumed = 16;
    CHECK(peers.acks.note(1, peers.to[1], 1001));
    CHECK(peers.run(1001) == Sent{1});
    CHECK(peers.to[1].reported == 16);
    // The counters wrap around.
    peers.to[2].consumed = 3;
    peers.to[2].reported = ~std::uint32_t{0} - 12;
    CHECK(peers.acks.note(2, peers.to[2], 2000));
    CHECK(peers.run(2000) == Sent{2});
}

TEST_CASE("nothing is owed to who has gone", "[rails]") {
    Peers peers;
    for (std::uint32_t peer = 0; peer < 3; ++peer) {
        peers.to[peer].frames = 1;
        peers.acks.hurry(peer, peers.to[peer]);
    }
    peers.gone[1] = true;
    CHECK(peers.run(0) == Sent{0, 2});
    CHECK(peers.next == never);
}

}  // namespace owed_acks

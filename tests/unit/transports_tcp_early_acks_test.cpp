// EarlyAcks: which messages are acknowledged as they come.
#include <catch2/catch.hpp>

#include "transports/tcp/early_acks.hpp"

namespace railmux {

using transports::tcp::EarlyAcks;
using Of = EarlyAcks::Of;

namespace {

constexpr std::size_t long_message = EarlyAcks::longest_short + 1;

/// One that is read, and not slept on.
EarlyAcks polled() {
    EarlyAcks acks;
    for (int i = 1; i < EarlyAcks::reads; ++i) REQUIRE_FALSE(acks.came(8));
    REQUIRE(acks.came(8));
    return acks;
}

/// A long one comes, after something was sent and waited for.
bool answered(EarlyAcks& acks, std::size_t bytes) {
    acks.sent();
    acks.waited();
    return acks.came(bytes);
}

/// ... and that long messages go to and fro over.
EarlyAcks conversing() {
    auto acks = polled();
    for (int i = 1; i < EarlyAcks::reads; ++i) {
        REQUIRE_FALSE(answered(acks, long_message));
    }
    REQUIRE(answered(acks, long_message));
    return acks;
}

}  // namespace

TEST_CASE("early acks: short messages are acknowledged early once a link is polled, until it may be slept on",
          "[transports][tcp]") {
    auto acks = polled();
    CHECK(acks.now() == Of::short_messages);
    CHECK_FALSE(acks.came(8));
    CHECK(acks.end());
    CHECK(acks.now() == Of::none);
    CHECK_FALSE(acks.end());
    CHECK_FALSE(acks.came(8));
}

TEST_CASE("early acks: long messages are while each is answered", "[transports][tcp]") {
    auto acks = conversing();
    CHECK(acks.now() == Of::long_messages);
    CHECK_FALSE(answered(acks, long_message));
    CHECK_FALSE(acks.came(8));  // the rest of it
    CHECK(acks.came(long_message));
    CHECK(acks.now() == Of::short_messages);
    CHECK_FALSE(answered(acks, long_message));  // the first of as many as before
    CHECK(acks.end());
}

TEST_CASE("early acks: no flood of long ones is, nor are longer ones, nor bulk", "[transports][tcp]") {
    auto flood = polled();
    for (int i = 0; i < 100; ++i) {
        if (i % EarlyAcks::reads != 0) flood.sent();
        if (i % EarlyAcks::reads != 1) flood.waited();
        REQUIRE_FALSE(flood.came(long_message));
    }
    CHECK(flood.now() == Of::short_messages);
    auto both_ways = polled();
    for (int i = 0; i < 100; ++i) {
        both_ways.sent();
        REQUIRE_FALSE(both_ways.came(long_message));
    }
    auto longer = conversing();
    CHECK(answered(longer, EarlyAcks::longest + 1));
    CHECK(longer.now() == Of::short_messages);
    auto bulk = conversing();
    CHECK(bulk.bulk());
    CHECK(bulk.now() == Of::short_messages);
    CHECK_FALSE(bulk.bulk());
    EarlyAcks none;
    CHECK_FALSE(none.bulk());
    CHECK(none.now() == Of::none);
}

}  // namespace railmux

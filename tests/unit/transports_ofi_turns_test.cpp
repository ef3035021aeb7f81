#include "transports/ofi/turns.hpp"

#include <catch2/catch.hpp>

using railmux::transports::LinkId;
using railmux::transports::ofi::Turns;

namespace {

constexpr LinkId flood{.index = 0}, other{.index = 1}, third{.index = 2};

/// How many works the link may send now.
int works_of(Turns& turns, LinkId link) {
    int count = 0;
    while (count <= 2 * Turns::works && turns.may_ask(link)) ++count;
    return count;
}

}  // namespace

TEST_CASE("while the provider has room for all, everybody may ask", "[ofi]") {
    Turns turns;
    CHECK(works_of(turns, flood) > Turns::works);
    CHECK(turns.may_ask(other));
}

TEST_CASE("who had no room and came first goes first, and then it is the next one's turn", "[ofi]") {
    Turns turns;
    turns.wait(flood);
    CHECK_FALSE(turns.may_ask(other));
    CHECK(works_of(turns, flood) == Turns::works);
    CHECK(works_of(turns, other) == Turns::works);
    CHECK(works_of(turns, flood) > 0);
}

TEST_CASE("who finds no room in its turn waits for the next one", "[ofi]") {
    Turns turns;
    turns.wait(flood);
    CHECK_FALSE(turns.may_ask(other));
    CHECK(turns.may_ask(flood));
    turns.wait(flood);
    CHECK_FALSE(turns.may_ask(flood));
    CHECK(turns.may_ask(other));
}

TEST_CASE("who does not come loses its turn", "[ofi]") {
    Turns turns;
    turns.wait(third);
    int refusals = 0;
    while (refusals < 100 && !turns.may_ask(other)) ++refusals;
    CHECK(refusals == Turns::patience);
}

TEST_CASE("nobody waits for a link that is over", "[ofi]") {
    Turns turns;
    turns.wait(third);
    CHECK_FALSE(turns.may_ask(other));
    turns.forget(third);
    CHECK(works_of(turns, other) > Turns::works);  // nobody else wants any
}

// Whether anything can be slept through.
#include <catch2/catch.hpp>

#include "progress_worlds.hpp"

using namespace progress_worlds;

TEST_CASE("turns: no order of steps loses a wake-up", "[progress]") {
    const bool switcher = GENERATE(false, true);
    std::size_t worlds = 0;
    for (int waiters = 0; waiters <= 2; ++waiters) {
        for (const bool helper : {false, true}) {
            for (const bool loop : {false, true}) {
                for (const auto caller : {Caller::none, Caller::isend_test, Caller::test_isend}) {
                    if (switcher && waiters == 2 && caller != Caller::none) continue;  // 90 % of all worlds
                    INFO(waiters << " waiters, helper " << helper << ", loop " << loop << ", caller "
                                 << static_cast<int>(caller) << ", switcher " << switcher);
                    const auto outcome = outcome_of({waiters, helper, loop, caller, switcher});
                    CHECK_FALSE(outcome.slept_through);
                    worlds += outcome.worlds;
                }
            }
        }
    }
    CHECK(worlds > 10'000);
}

TEST_CASE("turns: each rule is needed", "[progress]") {
    const auto lost = [](Cast cast, Without without) {
        cast.without = without;
        return outcome_of(cast).slept_through;
    };
    CHECK(lost({.waiters = 1}, Without::second_look));
    CHECK(lost({.loop = true}, Without::second_look));
    CHECK(lost({.waiters = 1, .caller = Caller::isend_test}, Without::rings_for_looks));
    CHECK(lost({.loop = true, .caller = Caller::isend_test}, Without::rings_for_looks));
    CHECK(lost({.helper = true, .caller = Caller::test_isend}, Without::rings_for_wants));
    CHECK(lost({.helper = true, .loop = true}, Without::rings_for_ends));
    CHECK(lost({.waiters = 2}, Without::ring_on_leaving));
    CHECK(lost({.waiters = 1, .loop = true}, Without::ring_on_leaving));
    CHECK(lost({.loop = true, .switcher = true}, Without::ring_on_switching));
    CHECK(lost({.helper = true, .loop = true, .switcher = true}, Without::ring_on_switching));
}

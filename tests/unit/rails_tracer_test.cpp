// Whom decisions are told to, and for how long.
#include <catch2/catch.hpp>

#include "captured.hpp"
#include "scratch.hpp"
#include "unit/rails_world.hpp"

using namespace rails_world;  // NOLINT: the tests are about it

TEST_CASE("once all is explained that was to be, nobody is told of decisions any more", "[rails][tracing]") {
    const auto said = railmux::test::captured([] {
        Couple pair(2, {.tracer = {.explain = 3}});
        CHECK(pair.b->manager.traced());
        pair.talk();
        CHECK(pair.b->manager.traced());
        for (int i = 0; i < 10; ++i) pair.talk();
        CHECK(!pair.b->manager.traced());
        pair.talk();
        CHECK(pair.b->heard.size() == 12);
    });
    CHECK_THAT(said, Catch::Matchers::Contains("these were the 3 decisions to explain"));
    CHECK(said.find("decision 4") == std::string::npos);
}

TEST_CASE("a trace goes on when all is explained", "[rails][tracing]") {
    static_cast<void>(railmux::test::captured([] {
        Couple pair(2, {.tracer = {.file = railmux::test::scratch_folder() + "/trace", .explain = 3}});
        for (int i = 0; i < 10; ++i) pair.talk();
        CHECK(pair.b->manager.traced());
    }));
}

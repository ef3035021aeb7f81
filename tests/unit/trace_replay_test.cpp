// Recorded messages through other policies.
#include <catch2/catch.hpp>

#include <railmux/error.hpp>
#include "base/text.hpp"

#include "trace/replay.hpp"
#include "trace_made.hpp"

using namespace railmux;
using trace::test::Made;

namespace {

/// Frames of 1000 bytes, one every `apart` ns.
trace::Trace flood(int frames, base::Nanoseconds apart) {
    Made made;
    made.add_links();
    for (int i = 0; i < frames; ++i) made.add_sent({.seq = static_cast<std::uint32_t>(i), .at = i * apart});
    return made.parsed();
}

}  // namespace

TEST_CASE("replay: a lone frame takes what its link's cost says", "[trace]") {
    const auto read = flood(10, 1'000'000);
    const auto result = trace::Replay(read).run("vft");
    CHECK(result.messages == 10);
    CHECK(result.bytes == 10'000);
    CHECK(result.median == Approx(18'000).margin(10));
    CHECK(result.makespan == Approx(9'018'000).margin(10));
}

TEST_CASE("replay: policies differ on the same work", "[trace]") {
    const auto read = flood(500, 8000);  // what the fast rail alone can nearly carry
    const trace::Replay recorded(read);
    const auto vft = recorded.run("vft");
    const auto turns = recorded.run("round_robin");
    CHECK(turns.mean_ns > 10 * vft.mean_ns);
    for (const auto name : base::split(sched::policy_names, '|')) CHECK(recorded.run(name).messages == 500);
    for (const auto stage : base::split(trace::Replay::stage_names, '|')) {
        CHECK(recorded.run("vft:" + std::string(stage)).messages == 500);
    }
    CHECK(recorded.run("vft").mean_ns == vft.mean_ns);                // nothing is left over of a run
    CHECK(recorded.run("vft:overlap_aware").mean_ns == vft.mean_ns);  // the default
}

TEST_CASE("replay: the pieces of a large message are one, and may be split anew", "[trace]") {
    Made made;
    made.add_links();
    for (const std::uint64_t first : {0U, 50'000'000U}) {  // its name is used twice
        made.add(trace::OfferRecord{
            .peer = 1, .message = 5, .bytes = 1'000'000, .time = trace::test::started + first + 1000});
        for (std::uint32_t i = 0; i < 10; ++i) {
            const auto at = static_cast<base::Nanoseconds>(first) + 10'000 * i + 2000;
            made.add_sent({.seq = i, .at = at, .bytes = 100'000, .message = 5});
        }
    }
    made.add_sent({.seq = 99, .at = 60'000'000, .bytes = 500, .flags = trace::decision_flag::again});  // not one more
    const auto read = made.parsed();
    const auto result = trace::Replay(read).run("vft");
    CHECK(result.messages == 2);
    CHECK(result.bytes == 2'000'000);
    const double together = 1e6 / (1 / 8.0 + 1 / 80.0);
    CHECK(result.mean_ns < 1.05 * together);
    CHECK(result.mean_ns > 0.98 * together);
    CHECK(trace::Replay(read).run("fixed").mean_ns > 8e6);
}

TEST_CASE("replay: what cannot be run is said", "[trace]") {
    const auto empty = Made().parsed();
    CHECK_THROWS_WITH(trace::Replay(empty), Catch::Matchers::Contains("no messages"));
    const auto long_one = flood(2, 20 * 86'400 * base::second);
    CHECK_THROWS_WITH(trace::Replay(long_one), Catch::Matchers::Contains("longer than ten days"));
    const auto read = flood(1, 1);
    CHECK_THROWS_AS(trace::Replay(read).run("robin"), Error);
    CHECK_THROWS_WITH(trace::Replay(read).run("vft:robin"), Catch::Matchers::Contains("no stage \"robin\""));
}

// Links whose bytes the processors of both ends move: one is used, the fastest by what is known of them.
#include <catch2/catch.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sched/explain.hpp"
#include "sched/processors.hpp"
#include "sched/vft.hpp"

using namespace railmux;
using sched::Candidate;
using sched::Processors;
using sched::to_ticks;

namespace {

Candidate link(std::uint32_t rail, double latency_ns, double per_byte_ns, bool by_processors = true) {
    const auto per_byte = to_ticks(per_byte_ns);
    return {.rail = rail,
            .cost = {.latency = to_ticks(latency_ns), .slope = per_byte, .gap = to_ticks(100.0), .per_byte = per_byte},
            .by_processors = by_processors};
}

/// The places of those that are used.
std::vector<std::size_t> used(Processors& processors, std::vector<Candidate>& candidates) {
    processors.choose(candidates);
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (!candidates[i].spare) places.push_back(i);
    }
    return places;
}

using Places = std::vector<std::size_t>;

}  // namespace

TEST_CASE("processors: of the links that they move the fastest is used, wherever it stands", "[sched]") {
    for (const bool turned : {false, true}) {
        Processors processors;
        std::vector candidates{link(0, 400, 0.1), link(1, 5000, 0.4)};
        if (turned) std::swap(candidates[0], candidates[1]);
        CHECK(used(processors, candidates) == Places{turned ? std::size_t{1} : std::size_t{0}});
    }
}

TEST_CASE("processors: other links are none of their business", "[sched]") {
    Processors processors;
    std::vector candidates{link(0, 400, 0.1), link(1, 9000, 8, false), link(2, 5000, 0.4), link(3, 100, 0.1, false)};
    CHECK(used(processors, candidates) == Places{0, 1, 3});
    std::vector without{link(0, 400, 0.1, false), link(1, 5000, 0.4, false)};
    CHECK(used(processors, without) == Places{0, 1});
    std::vector one{link(0, 9000, 8, false), link(1, 5000, 0.4)};
    CHECK(used(processors, one) == Places{0, 1});
}

TEST_CASE("processors: the one that is used follows what is known, and not what comes and goes", "[sched]") {
    Processors processors;
    std::vector candidates{link(0, 400, 0.1), link(1, 5000, 0.4)};
    REQUIRE(used(processors, candidates) == Places{0});
    candidates[0].cost.slope = to_ticks(2.0);  // 8.6 us against 6.6
    CHECK(used(processors, candidates) == Places{0});
    candidates[0].cost.slope = to_ticks(5.0);
    CHECK(used(processors, candidates) == Places{1});
    candidates[0].cost.slope = to_ticks(1.0);  // 4.5 us against 6.6
    CHECK(used(processors, candidates) == Places{1});
    candidates[0].cost.slope = to_ticks(0.1);
    CHECK(used(processors, candidates) == Places{0});
}

TEST_CASE("processors: another one takes over from a link that is lost, and gives way to a faster one that comes",
          "[sched]") {
    Processors processors;
    std::vector candidates{link(0, 400, 0.1), link(1, 5000, 0.4), link(2, 9000, 0.4)};
    REQUIRE(used(processors, candidates) == Places{0});
    candidates.erase(candidates.begin());
    CHECK(used(processors, candidates) == Places{0});
    CHECK(candidates[0].rail == 1);
    candidates.insert(candidates.begin(), link(0, 400, 0.1));
    CHECK(used(processors, candidates) == Places{0});
}

TEST_CASE("processors: models with a latency below nought compare, too", "[sched]") {
    Processors processors;
    std::vector candidates{link(0, -900, 0.1), link(1, -5000, 0.4)};
    CHECK(used(processors, candidates).size() == 1);
    CHECK(used(processors, candidates).size() == 1);
}

TEST_CASE("processors: where all of them add nothing to others, none is used", "[sched]") {
    Processors processors;
    std::vector candidates{link(0, 400, 0.1), link(1, 5000, 0.4), link(2, 9000, 0.4, false)};
    processors.spare(true);
    CHECK(used(processors, candidates) == Places{2});
    processors.spare(false);
    CHECK(used(processors, candidates) == Places{0, 2});
}

TEST_CASE("processors: no message is divided between links that they move, whatever waits", "[sched][vft]") {
    Processors processors;
    sched::Vft vft(2);
    std::vector candidates{link(0, 400, 0.3), link(1, 5000, 0.4)};
    const std::vector<std::string> names{"shm:node", "tcp:lo"};
    for (int i = 0; i < 100; ++i) {
        processors.choose(candidates);
        for (const std::uint64_t bytes : {64 << 10, 1 << 20, 4 << 20}) {
            std::vector<std::uint64_t> shares(2, 0);
            vft.split(candidates, bytes, 0, shares);
            CHECK(shares == std::vector<std::uint64_t>{bytes, 0});
            const auto verdict = sched::judge(vft, candidates, bytes, 0, true);
            CHECK(sched::reason(vft, verdict, candidates, names) == "all others are spare");
        }
        CHECK(vft.choose(candidates, 100, 0) == 0);
        vft.charge(candidates[0], 64 << 10, 0);
        candidates[0].backlog += 64 << 10;
    }
    CHECK(vft.lead(candidates, 0, 100, 0) > to_ticks(base::second));
}

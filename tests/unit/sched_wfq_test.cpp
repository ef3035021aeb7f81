#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "sched/baselines.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::Candidate;
using sched::Wfq;
using test::kib;
using test::mbit;

namespace {

/// Sends messages of `bytes`; what each candidate carried.
std::vector<std::uint64_t> carried(Wfq& wfq, std::span<const Candidate> candidates, std::uint64_t bytes, int messages) {
    std::vector<std::uint64_t> sum(candidates.size(), 0);
    for (int i = 0; i < messages; ++i) {
        const auto choice = wfq.choose(candidates, bytes, 0);
        wfq.charge(candidates[choice], bytes, 0);
        sum[choice] += bytes;
    }
    return sum;
}

std::vector<std::uint64_t> split(Wfq& wfq, std::span<const Candidate> candidates, std::uint64_t bytes) {
    std::vector<std::uint64_t> shares(candidates.size(), 99);
    wfq.split(candidates, bytes, 0, shares);
    return shares;
}

constexpr std::array<Candidate, 2> uneven{
    {{.rail = 0, .speed_bps = 1000 * mbit}, {.rail = 1, .speed_bps = 100 * mbit}}};
constexpr std::array<Candidate, 2> even{{{.rail = 0, .speed_bps = 1000 * mbit}, {.rail = 1, .speed_bps = 1000 * mbit}}};

}  // namespace

TEST_CASE("wfq: shares follow the link speeds, of messages and of bulk", "[sched][wfq]") {
    Wfq wfq(2);
    CHECK(carried(wfq, uneven, 64, 1100) == std::vector<std::uint64_t>{64 * 1000, 64 * 100});
    CHECK(split(wfq, uneven, 1100) == std::vector<std::uint64_t>{1000, 100});
}

TEST_CASE("wfq: bytes count, not messages", "[sched][wfq]") {
    Wfq wfq(2);
    REQUIRE(carried(wfq, even, 64 * kib, 1) == std::vector<std::uint64_t>{64 * kib, 0});
    CHECK(carried(wfq, even, kib, 64) == std::vector<std::uint64_t>{0, 64 * kib});
    CHECK(carried(wfq, even, kib, 64) == std::vector<std::uint64_t>{32 * kib, 32 * kib});
}

TEST_CASE("wfq: a choice alone counts nothing, what is handed over without one does", "[sched][wfq]") {
    Wfq wfq(2);
    for (int i = 0; i < 10; ++i) CHECK(wfq.choose(even, kib, 0) == 0);
    wfq.charge(even[0], 64 * kib, 0);  // as bulk is
    CHECK(carried(wfq, even, kib, 64) == std::vector<std::uint64_t>{0, 64 * kib});
}

TEST_CASE("wfq: an idle rail is owed no more than a piece of bulk", "[sched][wfq]") {
    const int idle = GENERATE(1000, 100'000, 1'000'000);
    Wfq wfq(2);
    for (int i = 0; i < idle; ++i) wfq.charge(even[0], kib, 0);  // for a peer that the other rail does not reach
    CHECK(carried(wfq, even, kib, 256) == std::vector<std::uint64_t>{0, 256 * kib});
    CHECK(carried(wfq, even, kib, 100) == std::vector<std::uint64_t>{50 * kib, 50 * kib});
}

TEST_CASE("wfq: bulk in pieces counts while it goes, at any ratio of speeds", "[sched][wfq]") {
    const std::array<Candidate, 2> far{{{.rail = 0, .speed_bps = 100'000 * mbit}, {.rail = 1, .speed_bps = mbit}}};
    Wfq wfq(2);
    const auto sum = carried(wfq, far, 256 * kib, 100'001 * 2);
    CHECK(sum == std::vector<std::uint64_t>{200'000 * 256 * kib, 2 * 256 * kib});
}

TEST_CASE("wfq: an unknown speed makes all shares equal, also when it is seen late", "[sched][wfq]") {
    const std::array<Candidate, 2> unknown{{{.rail = 0, .speed_bps = 1000 * mbit}, {.rail = 1, .speed_bps = 0}}};
    Wfq wfq(2);
    SECTION("from the beginning") {}
    SECTION("after one of known speed has been charged") { (void)carried(wfq, std::span(unknown).first(1), kib, 1000); }
    CHECK(carried(wfq, unknown, kib, 100) == std::vector<std::uint64_t>{50 * kib, 50 * kib});
    CHECK(split(wfq, unknown, 100) == std::vector<std::uint64_t>{50, 50});
}

#include <catch2/catch.hpp>

#include <array>
#include <limits>
#include <numeric>

#include <railmux/error.hpp>

#include "base/parameters.hpp"
#include "base/text.hpp"
#include "sched/policy.hpp"
#include "sched_sizes.hpp"

using namespace railmux;
using sched::Candidate;
using test::mbit;

namespace {

std::vector<std::size_t> counts(sched::Policy& policy, std::span<const Candidate> candidates, int messages) {
    std::vector<std::size_t> count(candidates.size(), 0);
    for (int i = 0; i < messages; ++i) {
        const auto choice = policy.choose(candidates, 64, 0);
        policy.charge(candidates[choice], 64, 0);
        ++count[choice];
    }
    return count;
}

std::vector<std::uint64_t> split(sched::Policy& policy, std::span<const Candidate> candidates, std::uint64_t bytes) {
    std::vector<std::uint64_t> shares(candidates.size(), 99);
    policy.split(candidates, bytes, 0, shares);
    return shares;
}

}  // namespace

TEST_CASE("an unknown policy is refused by name", "[sched]") {
    try {
        auto policy = sched::make_policy("wfa", 2);
        FAIL("accepted");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_config);
        CHECK(std::string(error.what()).find("wfa") != std::string::npos);
    }
}

TEST_CASE("the parameter offers every policy by the name it has, and no other", "[sched]") {
    const auto place = base::find_parameter("policy");
    REQUIRE(place);
    const auto& spec = base::parameter_table()[*place];
    CHECK(spec.choices == sched::policy_names);
    for (const auto name : base::split(spec.choices, '|')) CHECK(sched::make_policy(name, 1)->name() == name);
}

TEST_CASE("fixed uses the first candidate only", "[sched]") {
    auto policy = sched::make_policy("fixed", 2);
    const std::array<Candidate, 2> rails{{{.rail = 1, .speed_bps = 1000 * mbit}, {.rail = 0, .speed_bps = 100 * mbit}}};
    CHECK(counts(*policy, rails, 10) == std::vector<std::size_t>{10, 0});
    CHECK(split(*policy, rails, 1000) == std::vector<std::uint64_t>{1000, 0});
    CHECK(policy->lead(rails, 0, 1000, 0) == std::numeric_limits<sched::Ticks>::max());  // nothing changes that
}

TEST_CASE("round_robin takes turns and splits evenly", "[sched]") {
    auto policy = sched::make_policy("round_robin", 3);
    const std::array<Candidate, 3> rails{{{.rail = 0}, {.rail = 1}, {.rail = 2}}};
    CHECK(counts(*policy, rails, 30) == std::vector<std::size_t>{10, 10, 10});
    CHECK(split(*policy, rails, 10) == std::vector<std::uint64_t>{4, 3, 3});
}

TEST_CASE("weighted_round_robin follows the link speeds", "[sched]") {
    auto policy = sched::make_policy("weighted_round_robin", 2);
    const std::array<Candidate, 2> rails{{{.rail = 0, .speed_bps = 1000 * mbit}, {.rail = 1, .speed_bps = 100 * mbit}}};
    CHECK(counts(*policy, rails, 110) == std::vector<std::size_t>{100, 10});
    CHECK(split(*policy, rails, 1100) == std::vector<std::uint64_t>{1000, 100});
}

TEST_CASE("weighted_round_robin spreads its turns", "[sched]") {
    auto policy = sched::make_policy("weighted_round_robin", 2);
    const std::array<Candidate, 2> rails{{{.rail = 0, .speed_bps = 200 * mbit}, {.rail = 1, .speed_bps = 100 * mbit}}};
    std::size_t longest = 0;
    std::size_t run = 0;
    for (int i = 0; i < 30; ++i) {
        run = policy->choose(rails, 64, 0) == 0 ? run + 1 : 0;
        longest = std::max(longest, run);
    }
    CHECK(longest == 2);
}

TEST_CASE("an unknown speed makes all weights equal", "[sched]") {
    auto policy = sched::make_policy("weighted_round_robin", 2);
    const std::array<Candidate, 2> rails{{{.rail = 0, .speed_bps = 1000 * mbit}, {.rail = 1, .speed_bps = 0}}};
    CHECK(counts(*policy, rails, 10) == std::vector<std::size_t>{5, 5});
}

TEST_CASE("shares add up for every size, also where the product would overflow", "[sched]") {
    const std::array<Candidate, 3> rails{
        {{.rail = 0, .speed_bps = 400'000 * mbit}, {.rail = 1, .speed_bps = 1}, {.rail = 2, .speed_bps = 77 * mbit}}};
    for (const auto* name : {"fixed", "round_robin", "weighted_round_robin", "wfq"}) {
        auto policy = sched::make_policy(name, 3);
        for (const std::uint64_t bytes :
             {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{12345}, std::uint64_t{1} << 45}) {
            const auto shares = split(*policy, rails, bytes);
            INFO(name << " " << bytes);
            CHECK(std::accumulate(shares.begin(), shares.end(), std::uint64_t{0}) == bytes);
        }
    }
}

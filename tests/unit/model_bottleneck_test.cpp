// Rails that share something, from what they bring alone and in pairs.
#include <catch2/catch.hpp>

#include <random>

#include "model/bottleneck.hpp"

using namespace railmux;
using model::PairCapacity;

namespace {

/// A measurement: a few percent less than there is, or more.
double measured(double bps, std::mt19937_64& random) {
    return bps * std::normal_distribution<double>(0.99, 0.015)(random);
}

}  // namespace

TEST_CASE("two rails behind one shaper are a group of its capacity, and independent ones never", "[model]") {
    std::mt19937_64 random(1);
    for (int run = 0; run < 50; ++run) {
        const std::vector<double> behind_one{measured(1e9, random), measured(1e9, random)};
        const std::vector<PairCapacity> together{{0, 1, measured(1e9, random)}};
        const auto groups = model::find_bottlenecks(behind_one, together);
        REQUIRE(groups.size() == 1);
        CHECK(groups[0].rails == std::vector<std::uint32_t>{0, 1});
        CHECK(groups[0].bps == Approx(1e9).epsilon(0.1));

        const std::vector<double> alone{measured(1e9, random), measured(1e10, random), measured(1e8, random)};
        const std::vector<PairCapacity> pairs{
            {0, 1, measured(1.1e10, random)}, {0, 2, measured(1.1e9, random)}, {1, 2, measured(1.01e10, random)}};
        CHECK(model::find_bottlenecks(alone, pairs).empty());
    }
}

TEST_CASE("a fast and a slow rail that share are found, as is half a share", "[model]") {
    const std::vector<double> single{10e9, 1e9};
    CHECK(model::find_bottlenecks(single, std::vector<PairCapacity>{{0, 1, 10e9}}).size() == 1);
    CHECK(model::find_bottlenecks(single, std::vector<PairCapacity>{{0, 1, 10.9e9}}).empty());
    const std::vector<double> equal{10e9, 10e9};
    const auto half = model::find_bottlenecks(equal, std::vector<PairCapacity>{{0, 1, 15e9}});
    REQUIRE(half.size() == 1);
    CHECK(half[0].bps == 15e9);
}

TEST_CASE("groups are those that share pairwise", "[model]") {
    const std::vector<double> single(5, 1e9);
    // 0, 1 and 2 end in one port; 2 and 3 share a switch; 4 shares nothing.
    const std::vector<PairCapacity> pairs{{0, 1, 1e9}, {0, 2, 1e9}, {1, 2, 1.05e9}, {2, 3, 1.2e9}, {0, 3, 2e9},
                                          {1, 3, 2e9}, {0, 4, 2e9}, {1, 4, 2e9},    {2, 4, 2e9},   {3, 4, 2e9}};
    const auto groups = model::find_bottlenecks(single, pairs);
    REQUIRE(groups.size() == 2);
    CHECK(groups[0].rails == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(groups[0].bps == 1.05e9);
    CHECK(groups[1].rails == std::vector<std::uint32_t>{2, 3});
    CHECK(groups[1].bps == 1.2e9);
    CHECK(model::find_bottlenecks(single, std::vector<PairCapacity>{{0, 9, 1e9}, {3, 3, 1e9}}).empty());
}

TEST_CASE("what sharing means is said in plain words, and known to the model", "[model]") {
    CHECK(model::describe_pair("tcp:eth0", "tcp:eth1", 1 << 20, 1e9, 1e9, 1.03e9) ==
          "rail tcp:eth1 adds 3 % to rail tcp:eth0 at 1 MiB: they share a bottleneck of 1.03 Gbit/s");
    CHECK(model::describe_pair("a", "b", 65536, 1e9, 1e9, 1.97e9) ==
          "rail b adds 97 % to rail a at 64 KiB: they share nothing that counts");
    CHECK(model::readable_bps(941e6) == "941 Mbit/s");
    CHECK(model::readable_bps(25.4e9) == "25.4 Gbit/s");
    LogGP rail;
    rail.ranges.front().G = PerByte::at(1e9);
    CHECK(model::while_shared(rail, 2e9, 1e9).ranges.front().G.ns == Approx(16));
    CHECK(model::while_shared(rail, 2e9, 3e9) == rail);
}

// What the user says of the speed of rails: who weighs rails by it does so by that, and by nothing that the system tells.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/sim_pair.hpp"

namespace railmux {

namespace {

/// Two rails that say 10 Gbit/s of themselves, as pairs of virtual interfaces do whatever shapes them.
struct AlikeRails {
    AlikeRails() {
        hosts.settings = {{"probe", "off"}};
        for (const char* device : {"eth0", "eth1"}) {
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(host, {.device = device,
                                             .network = std::string("net-") + device,
                                             .timing = test::sim::simple_timing(2000, 300, 300, 400, 8),
                                             .speed_bps = 10'000'000'000});
            }
        }
    }

    test::SimHosts hosts;
};

/// An engine on each host, which know each other.
struct Two {
    Two(test::SimHosts& on, const char* policy) : hosts(on), a(on.start("a", policy)), b(on.start("b", policy)) {}
    void deliver(int count, std::size_t bytes) {
        for (int i = 0; i < count; ++i) hosts.deliver(*a, to_b, *b, to_a, bytes);
    }

    test::SimHosts& hosts;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b = a->add_peer(b->address()), to_a = b->add_peer(a->address());
};

/// What each rail has of so many messages of 1000 bytes.
std::map<std::string, std::uint64_t> messages_by_rail(test::SimHosts& hosts, const char* policy, int count) {
    Two two(hosts, policy);
    two.deliver(count, 1000);
    std::map<std::string, std::uint64_t> all;
    for (const auto& rail : two.a->traffic()) all[rail.rail] += rail.sent_bytes / 1000;
    return all;
}

}  // namespace

TEST_CASE("policies with weights follow the speeds that the user says", "[speeds]") {
    AlikeRails rails;
    SECTION("nothing is said") {
        for (const char* policy : {"weighted_round_robin", "wfq"}) {
            INFO(policy);
            const auto all = messages_by_rail(rails.hosts, policy, 220);
            CHECK(all.at("sim:eth0") >= 109);
            CHECK(all.at("sim:eth1") >= 109);
        }
    }
    SECTION("ten to one, and the slow one is named first") {
        rails.hosts.settings.emplace_back("rail.speeds", "sim:eth1=100M,sim:eth0=1G");
        for (const char* policy : {"weighted_round_robin", "wfq"}) {
            INFO(policy);
            const auto all = messages_by_rail(rails.hosts, policy, 220);
            CHECK(all.at("sim:eth0") >= 199);
            CHECK(all.at("sim:eth0") <= 201);
            CHECK(all.at("sim:eth1") >= 19);
        }
    }
    SECTION("one to ten, and fixed takes the rail that is said to be fast") {
        rails.hosts.settings.emplace_back("rail.speeds", "sim:*=1G,eth0=100M");
        const auto all = messages_by_rail(rails.hosts, "weighted_round_robin", 220);
        CHECK(all.at("sim:eth1") >= 199);
        CHECK(messages_by_rail(rails.hosts, "fixed", 20).at("sim:eth1") >= 18);  // from when both have a link
    }
}

TEST_CASE("large messages are split by the speeds that the user says", "[speeds]") {
    AlikeRails rails;
    rails.hosts.settings.emplace_back("rail.speeds", "sim:eth0=1G,sim:eth1=100M");
    Two two(rails.hosts, "weighted_round_robin");
    two.deliver(4, 11 << 20);
    for (const auto& rail : two.a->traffic()) {
        const auto tenths = rail.sent_bytes * 11 / (4 * (11 << 20));
        CHECK(tenths == (rail.rail == "sim:eth0" ? 10 : 1));
    }
}

TEST_CASE("the user's word on a speed is listed, and is the guess of what was not measured", "[speeds]") {
    AlikeRails rails;
    rails.hosts.settings.emplace_back("rail.speeds", "sim:eth1=100M");
    Two two(rails.hosts, "vft");
    two.deliver(1, 1000);
    for (const auto& rail : two.a->rails()) {
        CHECK(rail.speed_bps == (rail.name == "sim:eth1" ? 100'000'000 : 10'000'000'000));
    }
    const auto models = two.a->models(two.to_b);
    REQUIRE(models.size() == 2);
    for (const auto& link : models) {
        CHECK(link.source == ModelSource::guess);
        CHECK(link.model.ranges.front().G.bits_per_second() == Approx(link.rail == "sim:eth1" ? 1e8 : 1e10));
    }
}

TEST_CASE("a speed of a rail that there is not is an error that says what there is", "[speeds]") {
    AlikeRails rails;
    rails.hosts.settings.emplace_back("rail.speeds", "sim:eth0=1G,sim:eht1=100M");
    CHECK_THROWS_WITH(rails.hosts.start("a", "wfq"),
                      "rail.speeds names sim:eht1, which this host does not have (did you mean \"sim:eth1\"?)");
    rails.hosts.settings.back().second = "sim:eth0=1G,sim:ib*=100G";  // hosts may differ in what a glob finds
    CHECK_NOTHROW(rails.hosts.start("a", "wfq"));
}

}  // namespace railmux

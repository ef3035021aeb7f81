// Transports are told which of their rails are slow, as traffic shows; and which are is not up to what was guessed of them.
#include <map>
#include <set>
#include <utility>

#include "engine/sim_pair.hpp"
#include "forwarding_rail.hpp"

namespace railmux {

namespace {

using Told = std::map<std::string, std::set<bool>>;  // by rail: what Work::slow was

class WatchedRail final : public ForwardingRail {
public:
    WatchedRail(std::unique_ptr<Rail> below, Told& told) : ForwardingRail(std::move(below)), told_(told) {}
    [[nodiscard]] std::size_t post(std::span<const transports::Work> works) noexcept override {
        for (const auto& work : works) told_[traits().name].insert(work.slow);
        return ForwardingRail::post(works);
    }

private:
    Told& told_;
};

}  // namespace

TEST_CASE("a rail that is known to be slow is told so, and no other") {
    Told told;
    test::SimHosts hosts;
    hosts.around = [&](std::unique_ptr<transports::Rail> rail) -> std::unique_ptr<transports::Rail> {
        return std::make_unique<WatchedRail>(std::move(rail), told);
    };
    for (const auto& [device, ns_per_byte] : {std::pair{"fast", 1.0}, std::pair{"slow", 8.0}}) {  // 8 and 1 Gbit/s
        const auto timing = test::sim::simple_timing(2000, 300, 300, 400, ns_per_byte);
        for (const char* host : {"a", "b"}) {
            hosts.fabric.add_rail(host, {.device = device, .network = std::string("net-") + device, .timing = timing});
        }
    }
    const auto a = hosts.start("a", "vft");
    hosts.around = nullptr;  // the other side sends nothing of any size, and knows less
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    for (int i = 0; i < 20; ++i) hosts.deliver(*a, to_b, *b, to_a, 4 << 20);
    told.clear();
    hosts.deliver(*a, to_b, *b, to_a, 4 << 20);
    REQUIRE(told.size() == 2);
    for (const auto& [rail, slow] : told) {
        INFO(rail);
        CHECK(slow == std::set{rail.find("slow") != std::string::npos});
    }
}

namespace {

/// Of so many large messages over two rails, of 1 Gbit/s and of `second_bps`, which is taken to have `guessed_bps`: what the
/// second one carries of the first `warm` of them, and of the others.
std::pair<std::uint64_t, std::uint64_t> carried_by_second(double second_bps, std::uint64_t guessed_bps, int warm,
                                                          int more) {
    test::SimHosts hosts;
    hosts.settings = {{"probe", "off"}};
    for (const char* host : {"a", "b"}) {
        hosts.fabric.add_rail(host, {.device = "eth0",
                                     .network = "net0",
                                     .timing = test::sim::simple_timing(5000, 300, 300, 400, 8),
                                     .speed_bps = 1'000'000'000});
        hosts.fabric.add_rail(host, {.device = "eth1",
                                     .network = "net1",
                                     .timing = test::sim::simple_timing(5000, 300, 300, 400, 8e9 / second_bps),
                                     .speed_bps = guessed_bps});
    }
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    const auto carried = [&] {
        for (const auto& rail : a->traffic()) {
            if (rail.rail == "sim:eth1") return rail.sent_bytes;
        }
        return std::uint64_t{0};
    };
    for (int i = 0; i < warm; ++i) hosts.deliver(*a, to_b, *b, to_a, 1 << 20);
    const auto before = carried();
    for (int i = 0; i < more; ++i) hosts.deliver(*a, to_b, *b, to_a, 1 << 20);
    return {before, carried() - before};
}

}  // namespace

TEST_CASE("a guess of a rail's speed that is wrong by 100 in either direction does not last") {
    for (const std::uint64_t guessed : {10'000'000ULL, 50'000'000ULL, 100'000'000'000ULL}) {
        INFO(guessed << " bit/s guessed of a rail of 1 Gbit/s");
        const auto [first, then] = carried_by_second(1e9, guessed, 120, 20);  // a second of traffic
        CHECK(then > 20 * (std::uint64_t{1} << 20) * 2 / 5);
    }
}

TEST_CASE("a rail that is rightly thought to be far too slow carries next to nothing") {
    const auto [first, then] = carried_by_second(20e6, 20'000'000, 120, 120);
    CHECK(first <= 64 * 1024);
    CHECK(then == 0);
}

}  // namespace railmux

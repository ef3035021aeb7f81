// What rails can take at once is respected, whatever is configured.
#include <railmux/error.hpp>

#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::SimHosts;

TEST_CASE("rails: pieces of a large message are no larger than what each rail puts at once", "[engine]") {
    SimHosts hosts;
    for (const char* host : {"a", "b"}) {
        hosts.fabric.add_rail(host, {.device = "eth0", .network = "net0", .max_put = 1 << 20});
        hosts.fabric.add_rail(host, {.device = "eth1", .network = "net1", .max_put = 20'000});
    }
    for (const char* policy : {"vft", "fixed", "round_robin"}) {
        const auto a = hosts.start("a", policy);
        const auto b = hosts.start("b", policy);
        const auto before = hosts.fabric.counters("a/eth0");
        hosts.deliver(*a, a->add_peer(b->address()), *b, b->add_peer(a->address()), 2'000'000);
        const auto after = hosts.fabric.counters("a/eth0");
        CHECK(after.put_bytes - before.put_bytes <= (after.puts - before.puts) * 20'000);
    }
}

TEST_CASE("rails: one that is alone gets large pieces if it is fast, and fewer bytes at once if not", "[engine]") {
    constexpr std::size_t mib = 1 << 20;
    const auto pieces_of = [](double ns_per_byte, std::uint64_t speed_bps) {
        SimHosts hosts;
        transports::sim::Timing timing;
        timing.ranges = {{.G = ns_per_byte}};
        for (const char* host : {"a", "b"}) hosts.fabric.add_rail(host, {.timing = timing, .speed_bps = speed_bps});
        const auto a = hosts.start("a", "vft");
        const auto b = hosts.start("b", "vft");
        const auto to_b = a->add_peer(b->address());
        const auto to_a = b->add_peer(a->address());
        hosts.deliver(*a, to_b, *b, to_a, 4 * mib);  // and what the rail is like is known
        const auto before = hosts.fabric.counters("a/eth0").puts;
        hosts.deliver(*a, to_b, *b, to_a, 4 * mib);
        return hosts.fabric.counters("a/eth0").puts - before;
    };
    CHECK(pieces_of(0.08, 100'000'000'000) == 4);  // 1 MiB takes 84 us
    CHECK(pieces_of(0.8, 10'000'000'000) > 12);    // ... or ten times as long
    CHECK(pieces_of(8, 1'000'000'000) == 16);      // 256 KiB: 2 ms
}

TEST_CASE("rails: one that gathers too few pieces is left out, and says so", "[engine]") {
    SimHosts hosts;
    hosts.fabric.add_rail("a", {.device = "eth0", .network = "net0", .max_segments = 2});
    hosts.fabric.add_rail("a", {.device = "eth1", .network = "net1"});
    const auto a = hosts.start("a", "vft");
    for (const auto& rail : a->rails()) CHECK(rail.usable == (rail.name != "sim:eth0"));
}

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

TEST_CASE("rails: one that gathers too few pieces is left out, and says so", "[engine]") {
    SimHosts hosts;
    hosts.fabric.add_rail("a", {.device = "eth0", .network = "net0", .max_segments = 2});
    hosts.fabric.add_rail("a", {.device = "eth1", .network = "net1"});
    const auto a = hosts.start("a", "vft");
    for (const auto& rail : a->rails()) CHECK(rail.usable == (rail.name != "sim:eth0"));
}

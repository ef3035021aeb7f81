// Peers that share rails: what one is sent counts for the others.
#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::pattern;
using test::SimHosts;

TEST_CASE("sharing: who can be reached over one rail only has it to himself", "[engine]") {
    // The thesis' example: A is reachable over rail 0 only, B over 0 and 1, one large message each: all of B's over rail 1.
    SimHosts hosts;
    const auto timing = test::sim::simple_timing(5000, 300, 300, 400, 1.0);
    for (const char* host : {"s", "a", "b"})
        hosts.fabric.add_rail(host, {.device = "eth0", .network = "net0", .timing = timing});
    for (const char* host : {"s", "b"})
        hosts.fabric.add_rail(host, {.device = "eth1", .network = "net1", .timing = timing});
    const auto s = hosts.start("s", "vft");
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const std::array receivers{a.get(), b.get()};
    const std::array to{s->add_peer(a->address()), s->add_peer(b->address())};
    const std::array from{a->add_peer(s->address()), b->add_peer(s->address())};

    const auto send_both = [&](std::size_t bytes) {
        const auto data = pattern(bytes);
        std::array<std::vector<std::byte>, 2> got{std::vector<std::byte>(bytes), std::vector<std::byte>(bytes)};
        std::array<Request, 2> sends;
        std::array<Request, 2> receives;
        for (std::size_t i = 0; i < 2; ++i) {
            const MutableBuffer in(got[i]);
            receives[i] = receivers[i]->irecv(from[i], 1, {&in, 1}, nullptr);
            const ConstBuffer out(data);
            sends[i] = s->isend(to[i], 1, {&out, 1}, nullptr);
        }
        hosts.until({s.get(), a.get(), b.get()}, [&] {
            bool all = true;
            for (std::size_t i = 0; i < 2; ++i) {
                if (sends[i].active()) all = s->test(sends[i]).has_value() && all;
                if (receives[i].active()) all = receivers[i]->test(receives[i]).has_value() && all;
            }
            return all;
        });
        for (const auto& one : got) CHECK(test::same(one, data));
    };
    const auto sent_to_b = [&](std::string_view rail) {
        std::uint64_t bytes = 0;
        for (const auto& t : s->traffic()) {
            if (t.peer == to[1] && t.rail == rail) bytes += t.sent_bytes;
        }
        return bytes;
    };

    for (int i = 0; i < 20; ++i) send_both(1 << 20);  // links come up, and are known
    const auto before = sent_to_b("sim:eth0");
    send_both(4 << 20);
    CHECK(sent_to_b("sim:eth0") - before < (4 << 20) / 20);
}

TEST_CASE("what traffic shows of a rail, and how far that is from its probe", "[engine]") {
    SimHosts hosts;
    auto timing = test::sim::simple_timing(5000, 300, 300, 400, 80.0);
    timing.burst_bytes = 512 * 1024;  // a probe fits into it
    timing.burst_G = 0.5;
    for (const char* host : {"a", "b"}) {
        hosts.fabric.add_rail(host, {.device = "eth0", .network = "net0", .timing = timing});
    }
    hosts.look_each = 500;
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    const auto send = [&](std::size_t bytes) { hosts.deliver(*a, to_b, *b, to_a, bytes); };
    for (int i = 0; i < 100; ++i) send(8);  // meanwhile it is probed
    auto models = a->models(to_b);
    REQUIRE(models.size() == 1);
    CHECK(models[0].drift == 1);
    CHECK(models[0].model.range(1 << 16).G.ns < 2);
    for (int i = 0; i < 4; ++i) send(1 << 20);
    models = a->models(to_b);
    CHECK(models[0].model.range(1 << 16).G.ns == Approx(80).epsilon(0.05));
    CHECK(models[0].drift > 40);
}

// Small messages that follow each other over one rail without a choice for each.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/sim_pair.hpp"

namespace railmux {

namespace {

/// Two rails of 1 Gbit/s, a near and a far one, of which that is known.
struct NearAndFar {
    NearAndFar() {
        hosts.look_each = 1'000;
        for (const auto& [device, latency] : {std::pair{"near", 5'000}, std::pair{"far", 55'000}}) {
            const auto timing = test::sim::simple_timing(latency, 300, 300, 400, 8);
            for (const char* host : {"a", "b", "c"}) {
                hosts.fabric.add_rail(host, {.device = device, .network = device, .timing = timing});
            }
        }
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        c = hosts.start("c", "vft");
        to_c = a->add_peer(c->address());
        for (auto* other : {b.get(), c.get()}) {
            const auto there = other == b.get() ? to_b : to_c;
            const auto back = other->add_peer(a->address());
            // Until the probes are over.
            for (int i = 0; i < 200; ++i) hosts.deliver(*a, there, *other, back, i % 2 == 0 ? 8 : 4096);
            const auto end = hosts.fabric.now() + base::millisecond;  // and all is acknowledged
            hosts.until({a.get(), other}, [&] { return hosts.fabric.now() > end; });
        }
    }

    /// The rail that a message takes which is sent now.
    std::string rail_of_next(Peer to, std::size_t bytes) {
        auto before = carried();
        data.emplace_back(bytes);
        const ConstBuffer out(data.back());
        requests.push_back(a->isend(to, 1, {&out, 1}, nullptr));
        a->progress();
        std::string taken;
        for (const auto& [rail, sum] : carried()) {
            if (sum > before[rail]) taken += rail;
        }
        return taken;
    }
    std::map<std::string, std::uint64_t> carried() {
        std::map<std::string, std::uint64_t> bytes;
        for (const auto& rail : a->traffic()) bytes[rail.rail] += rail.sent_bytes;
        return bytes;
    }

    test::SimHosts hosts;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    std::unique_ptr<messaging::Engine> c;
    Peer to_b;
    Peer to_c;
    std::vector<std::vector<std::byte>> data;
    std::vector<Request> requests;
};

}  // namespace

TEST_CASE("a small message does not follow the ones before it behind a large one", "[engine]") {
    NearAndFar rails;
    const auto to_whom = GENERATE(false, true) ? rails.to_c : rails.to_b;  // the large one
    CHECK(rails.rail_of_next(rails.to_b, 8) == "sim:near");
    CHECK(rails.rail_of_next(rails.to_b, 8) == "sim:near");
    REQUIRE(rails.rail_of_next(to_whom, 8 * 1024) == "sim:near");  // is there for 65 us or more
    CHECK(rails.rail_of_next(rails.to_b, 8) == "sim:far");
}

}  // namespace railmux

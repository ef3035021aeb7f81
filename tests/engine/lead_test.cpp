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
        for (const auto& [device, latency] : {std::pair{"near", 5'000}, std::pair{"far", 35'000}}) {
            const auto timing = test::sim::simple_timing(latency, 300, 300, 400, 8);
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(host, {.device = device, .network = device, .timing = timing});
            }
        }
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        for (int i = 0; i < 200; ++i) hosts.deliver(*a, to_b, *b, to_a, i % 2 == 0 ? 8 : 4096);  // the probes are over
    }

    /// The rail that a message takes which is sent now.
    std::string rail_of_next(std::size_t bytes) {
        auto before = carried();
        data.emplace_back(bytes);
        const ConstBuffer out(data.back());
        requests.push_back(a->isend(to_b, 1, {&out, 1}, nullptr));
        a->progress();
        std::string taken;
        for (const auto& [rail, sum] : carried()) {
            if (sum > before[rail]) taken += rail;
        }
        return taken;
    }
    std::map<std::string, std::uint64_t> carried() {
        std::map<std::string, std::uint64_t> bytes;
        for (const auto& rail : a->traffic()) bytes[rail.rail] = rail.sent_bytes;
        return bytes;
    }

    test::SimHosts hosts;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;
    std::vector<std::vector<std::byte>> data;
    std::vector<Request> requests;
};

}  // namespace

TEST_CASE("a small message does not follow the ones before it behind a large one", "[engine]") {
    NearAndFar rails;
    CHECK(rails.rail_of_next(8) == "sim:near");
    CHECK(rails.rail_of_next(8) == "sim:near");
    REQUIRE(rails.rail_of_next(8 * 1024) == "sim:near");  // is there for 65 us
    CHECK(rails.rail_of_next(8) == "sim:far");
}

}  // namespace railmux

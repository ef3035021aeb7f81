// Messages that follow each other over one rail without a choice for each: small ones, and heavy ones that go alone.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/sim_pair.hpp"

namespace railmux {

namespace {

/// Two rails of 1 Gbit/s, a near and a far one, of which that is known.
struct NearAndFar {
    explicit NearAndFar(double far = 55'000, bool c_is_far = true) {
        hosts.look_each = 1'000;
        for (const auto& [device, latency] : {std::pair{"near", 5'000.0}, std::pair{"far", far}}) {
            const auto timing = test::sim::simple_timing(latency, 300, 300, 400, 8);
            for (const char* host : {"a", "b", "c"}) {
                if (host == std::string_view("c") && device == std::string_view("far") && !c_is_far) continue;
                hosts.fabric.add_rail(host, {.device = device, .network = device, .timing = timing});
            }
        }
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        c = hosts.start("c", "vft");
        to_c = a->add_peer(c->address());
        from_b = b->add_peer(a->address());
        from_c = c->add_peer(a->address());
        for (auto* other : {b.get(), c.get()}) {
            const auto there = other == b.get() ? to_b : to_c;
            const auto back = other == b.get() ? from_b : from_c;
            // Until the probes are over.
            for (int i = 0; i < 200; ++i) hosts.deliver(*a, there, *other, back, i % 2 == 0 ? 8 : 4096);
            const auto end = hosts.fabric.now() + base::millisecond;  // and all is acknowledged
            hosts.until({a.get(), other}, [&] { return hosts.fabric.now() > end; });
        }
    }

    /// A message there, and as many bytes back.
    void exchange(Peer to, std::size_t bytes) {
        auto& other = to == to_b ? *b : *c;
        const auto back = to == to_b ? from_b : from_c;
        hosts.deliver(*a, to, other, back, bytes);
        hosts.deliver(other, back, *a, to, bytes);
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
    Peer from_b;
    Peer from_c;
    std::vector<std::vector<std::byte>> data;
    std::vector<Request> requests;
};

}  // namespace

TEST_CASE("a small message does not follow the ones before it behind a large one", "[engine]") {
    NearAndFar rails;
    const auto to_whom = GENERATE(false, true) ? rails.to_c : rails.to_b;  // the large one
    static_cast<void>(rails.rail_of_next(rails.to_b, 8));                  // may try how far the other rail is
    CHECK(rails.rail_of_next(rails.to_b, 8) == "sim:near");
    CHECK(rails.rail_of_next(rails.to_b, 8) == "sim:near");
    REQUIRE(rails.rail_of_next(to_whom, 8 * 1024) == "sim:near");  // is there for 65 us or more
    CHECK(rails.rail_of_next(rails.to_b, 8) == "sim:far");
}

TEST_CASE("a heavy message that goes alone does not follow the ones before it behind one to whomever", "[engine]") {
    const auto c_is_far = GENERATE(false, true);  // else only the near rail leads to it
    NearAndFar rails(55'000, c_is_far);
    const auto to_whom = GENERATE(false, true) ? rails.to_c : rails.to_b;
    for (int i = 0; i < 3; ++i) rails.exchange(rails.to_b, 1024);
    REQUIRE(rails.rail_of_next(to_whom, 8 * 1024) == "sim:near");
    CHECK(rails.rail_of_next(rails.to_b, 1024) == "sim:far");
}

TEST_CASE("small messages do not follow the ones before them behind a heavy one that goes alone", "[engine]") {
    NearAndFar rails(20'000);
    const auto to_whom = GENERATE(false, true) ? rails.to_c : rails.to_b;  // the heavy one
    for (int i = 0; i < 2; ++i) rails.exchange(to_whom, 3000);             // the next of these follows them
    rails.exchange(rails.to_b, 8);                                         // ... and of these
    REQUIRE(rails.rail_of_next(to_whom, 3000) == "sim:near");              // is there for 24 us
    CHECK(rails.rail_of_next(rails.to_b, 8) == "sim:far");
}

}  // namespace railmux

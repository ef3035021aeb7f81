// Rails that are lost and come back, as the application sees it.
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::SimPair;

namespace {

void deliver_both_ways(SimPair& pair) {
    pair.hosts.deliver(*pair.a, pair.to_b, *pair.b, pair.to_a, 100'000);
    pair.hosts.deliver(*pair.b, pair.to_a, *pair.a, pair.to_b, 8);
}

}  // namespace

TEST_CASE("events: a rail to a peer is lost and comes back", "[engine]") {
    SimPair pair("round_robin");
    std::vector<RailEvent> down, up;
    std::optional<Request> said;
    const std::array<std::byte, 8> bytes{};
    pair.a->on_rail_down([&](const RailEvent& event) {
        down.push_back(event);
        const ConstBuffer buffer(bytes);
        said = pair.a->isend(pair.to_b, 9, {&buffer, 1}, nullptr);  // calling the context is allowed
    });
    pair.a->on_rail_up([&](const RailEvent& event) {
        up.push_back(event);
        pair.a->on_rail_up(nullptr);
    });
    deliver_both_ways(pair);
    pair.until([&] { return pair.a->models(pair.to_b).size() == 2; });
    CHECK(up.empty());  // what comes up for the first time had not been lost
    pair.hosts.fabric.cut("a/eth1", "b/eth1", test::sim::Cut::loud);
    pair.until([&] { return !down.empty(); });
    CHECK(down[0].rail == "sim:eth1");
    CHECK(down[0].peer == pair.to_b);
    CHECK(down[0].cause == "the path is cut");
    std::array<std::byte, 8> got{};
    const MutableBuffer in(got);
    auto receive = pair.b->irecv(pair.to_a, 9, {&in, 1}, nullptr);
    pair.until([&] { return pair.b->test(receive).has_value(); });
    deliver_both_ways(pair);
    pair.hosts.fabric.restore("a/eth1", "b/eth1");
    pair.until([&] { return !up.empty() && pair.b->models(pair.to_a).size() == 2; });
    CHECK(up[0].rail == "sim:eth1");
    CHECK(up[0].peer == pair.to_b);
    CHECK(up[0].cause == "the path is cut");
    CHECK(up[0].down.count() > 0);
    deliver_both_ways(pair);
    CHECK(down.size() == 1);
    CHECK(up.size() == 1);
}

TEST_CASE("events: an interface that goes down and comes up is told as such", "[engine]") {
    SimPair pair("round_robin");
    std::vector<std::string> told;
    const auto note = [&](const char* what) {
        return [&told, what](const RailEvent& event) {
            told.push_back(std::string(what) + (event.peer.valid() ? " to b " : " ") + event.rail + ": " + event.cause);
        };
    };
    pair.a->on_rail_down(note("down"));
    pair.a->on_rail_up(note("up"));
    deliver_both_ways(pair);
    pair.until([&] { return pair.a->models(pair.to_b).size() == 2; });
    pair.hosts.fabric.rail_down("a/eth1", "no carrier");
    pair.until([&] { return told.size() == 2; });
    CHECK_FALSE(pair.a->rails()[1].usable);
    deliver_both_ways(pair);
    pair.hosts.fabric.restore_rail("a/eth1");
    pair.until([&] { return told.size() == 4; });
    CHECK(told == std::vector<std::string>{"down to b sim:eth1: rail down: no carrier", "down sim:eth1: no carrier",
                                           "up sim:eth1: no carrier", "up to b sim:eth1: rail down: no carrier"});
    CHECK(pair.a->rails()[1].usable);
    deliver_both_ways(pair);
}

TEST_CASE("events: a peer that is gone is told with all that happened; others are served", "[engine]") {
    test::SimHosts hosts;
    hosts.settings = {{"recover.patience", "3s"}, {"connect.timeout", "200ms"}};
    for (const char* host : {"a", "b", "c"}) hosts.fabric.add_rail(host, {.device = "eth0", .confirms = true});
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto c = hosts.start("c", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_c = a->add_peer(c->address());
    const auto from_b = b->add_peer(a->address());
    const auto from_c = c->add_peer(a->address());
    std::vector<PeerEvent> lost;
    a->on_peer_lost([&](const PeerEvent& event) { lost.push_back(event); });
    hosts.deliver(*a, to_b, *b, from_b, 8);
    hosts.deliver(*a, to_c, *c, from_c, 8);
    hosts.fabric.cut("a/eth0", "b/eth0", test::sim::Cut::silent);
    const std::array<std::byte, 8> bytes{};
    const ConstBuffer out(bytes);
    auto ended = a->isend(to_b, 1, {&out, 1}, nullptr);
    std::array<std::byte, 8> got{};
    const MutableBuffer in(got);
    auto answer = a->irecv(to_b, 1, {&in, 1}, nullptr);
    std::optional<Status> status;
    const auto begin = hosts.fabric.now();
    hosts.until({a.get(), b.get(), c.get()}, [&] { return (status = a->test(answer)).has_value(); });
    static_cast<void>(a->test(ended));  // it had left: an eager message is not waited for
    CHECK_FALSE(status->ok());
    CHECK(hosts.fabric.now() - begin > 3 * base::second);
    CHECK(hosts.fabric.now() - begin < 5 * base::second);
    hosts.until({a.get()}, [&] { return !lost.empty(); });
    CHECK(lost[0].peer == to_b);
    CHECK_THAT(lost[0].causes, Catch::Contains("rail sim:eth0 (") && Catch::Contains("nothing acknowledged for ") &&
                                   Catch::Contains("lost 3.0 s ago"));
    CHECK(a->failure(to_b) == lost[0].causes);
    hosts.deliver(*a, to_c, *c, from_c, 100'000);
    CHECK(lost.size() == 1);
}

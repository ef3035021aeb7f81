// Failover: whatever dies, at whatever moment, every message arrives once, whole, and in order.
#include "engine/sim_pair.hpp"

#include "engine/pair.hpp"
#include "repeats.hpp"

using namespace railmux;
using test::pattern;
using test::SimPair;

namespace {

// Empty, tiny, eager, the largest eager, rendezvous in one fragment (or unasked, if nothing else is under way), rendezvous
// striped over both rails.
constexpr std::array<std::size_t, 6> sizes = {0, 8, 3000, 16384, 60'000, 900'000};
constexpr int rounds = 3;

/// Both sides send each other every size, all with one tag, so that only order tells the messages apart.
void exchange(SimPair& pair) {
    struct Half {
        messaging::Engine& from;
        messaging::Engine& to;
        Peer receiver;
        Peer sender;
        std::vector<std::vector<std::byte>> data{};
        std::vector<std::vector<std::byte>> got{};
        std::vector<Request> sends{};
        std::vector<Request> receives{};
        std::size_t ended = 0;
    };
    std::array halves{Half{*pair.a, *pair.b, pair.to_b, pair.to_a}, Half{*pair.b, *pair.a, pair.to_a, pair.to_b}};
    unsigned seed = 1;
    for (auto& half : halves) {
        for (int i = 0; i < rounds; ++i) {
            for (const auto bytes : sizes) {
                half.data.push_back(pattern(bytes, ++seed));
                half.got.emplace_back(bytes);
            }
        }
        for (auto& data : half.data) {
            const ConstBuffer buffer(data);
            half.sends.push_back(half.from.isend(half.receiver, 7, {&buffer, 1}, nullptr));
        }
    }
    for (auto& half : halves) {
        for (auto& got : half.got) {
            const MutableBuffer buffer(got);
            half.receives.push_back(half.to.irecv(half.sender, 7, {&buffer, 1}, nullptr));
        }
    }
    pair.until([&] {
        bool all = true;
        for (auto& half : halves) {
            for (auto* requests : {&half.sends, &half.receives}) {
                auto& engine = requests == &half.sends ? half.from : half.to;
                for (auto& request : *requests) {
                    if (!request.active()) continue;
                    const auto status = engine.test(request);
                    if (status) REQUIRE(status->ok());
                    all = all && status;
                }
            }
        }
        return all;
    });
    for (auto& half : halves) {
        CHECK(std::ranges::equal(half.got, half.data, test::same));
        CHECK(half.from.balanced());
    }
}

}  // namespace

TEST_CASE("failover: two rails that overtake each other", "[engine]") {
    SimPair pair(GENERATE("round_robin", "vft"));
    exchange(pair);
}

TEST_CASE("failover: a link killed at each step of an exchange", "[engine]") {
    const auto* policy = GENERATE("round_robin", "vft");
    const auto* device = GENERATE("eth0", "eth1");
    test::with_link_killed_at_each_step(policy, device, exchange);
}

TEST_CASE("failover: a work killed on the way, at each work", "[engine]") {
    const auto* policy = GENERATE("round_robin", "vft");
    const auto steps = test::steps_without_faults(policy, "b", "eth0", exchange);
    for (std::uint64_t n = 1; n <= steps / 2; n += test::each(1)) {
        const auto plan = "kill_work@" + std::to_string(n);
        INFO(policy << " " << plan);
        SimPair pair(policy, {{"b/eth0", transports::FaultPlan::parse(plan)}});
        exchange(pair);
    }
}

TEST_CASE("failover: random faults on every rail", "[engine]") {
    const std::string faults =
        GENERATE(",refuse=30%", ",duplicate=30%", ",delay=30%:9", ",kill_link=1%,delay=5%:3",
                 ",kill_link=3%,refuse=20%,delay=10%:5,duplicate=10%", ",kill_work=2%,delay_work=10%:5,duplicate=10%");
    test::with_random_faults(faults, exchange);
}

TEST_CASE("failover: the only rail is cut and comes back", "[engine]") {
    SimPair pair("vft", {}, 1, 1);
    exchange(pair);
    pair.hosts.fabric.cut("a/eth0", "b/eth0", test::sim::Cut::loud);
    const auto data = pattern(50'000);
    std::vector<std::byte> got(data.size());
    const ConstBuffer out(data);
    const MutableBuffer in(got);
    auto send = pair.a->isend(pair.to_b, 1, {&out, 1}, nullptr);
    auto receive = pair.b->irecv(pair.to_a, 1, {&in, 1}, nullptr);
    const auto cut_until = pair.hosts.fabric.now() + 2 * base::second;
    pair.until([&] { return pair.hosts.fabric.now() >= cut_until; });
    CHECK(!pair.b->test(receive));
    pair.hosts.fabric.restore("a/eth0", "b/eth0");
    pair.until([&] { return pair.b->test(receive).has_value(); });
    pair.until([&] { return pair.a->test(send).has_value(); });
    CHECK(test::same(got, data));
}

TEST_CASE("failover: a link that comes up swallows no acknowledgement", "[engine]") {
    // The second link is proven while the acknowledgement of an answer over the first one is owed.
    for (int later = 0; later < 400; later += test::each(10)) {
        test::SimHosts hosts;
        hosts.settings = {{"probe", "off"}};
        for (int i = 0; i < 2; ++i) {
            const auto timing = test::sim::simple_timing((2 + i * later) * 1000, 300, 300, 400, 1.0);
            const auto number = std::to_string(i);
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(host, {.device = "eth" + number, .network = "net" + number, .timing = timing});
            }
        }
        hosts.look_each = 5'000;
        const auto a = hosts.start("a", "fixed");
        const auto b = hosts.start("b", "fixed");
        const auto to_b = a->add_peer(b->address());
        const auto to_a = b->add_peer(a->address());
        hosts.deliver(*a, to_b, *b, to_a, 8);
        hosts.deliver(*b, to_a, *a, to_b, 8);
        const auto end = hosts.fabric.now() + base::second;
        hosts.until({a.get(), b.get()},
                    [&] { return b->flush(std::chrono::nanoseconds(0)) || hosts.fabric.now() > end; });
        CHECK(b->flush(std::chrono::nanoseconds(0)));
    }
}

// What has arrived, though nobody has confirmed it, is not put again: its region may be closed by then, which would cost the
// link that it is put over, and so one after the other.
TEST_CASE("failover: a link that is lost costs no other one, on rails that end links for a wrong put", "[engine]") {
    base::Nanoseconds took = 0;
    for (base::Nanoseconds when = -1; when < took; when += 2000) {
        INFO("cut after " << when << " of " << took << " ns");
        test::SimHosts hosts;
        for (int i = 0; i < 2; ++i) {
            const auto timing = transports::sim::simple_timing(20000 * (i + 1), 300, 300, 400, 1.0);
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(host, {.device = "eth" + std::to_string(i),
                                             .network = "net" + std::to_string(i),
                                             .timing = timing,
                                             .bad_put_ends_link = true});
            }
        }
        const auto a = hosts.start("a", "round_robin");
        const auto b = hosts.start("b", "round_robin");
        const auto to_b = a->add_peer(b->address());
        const auto to_a = b->add_peer(a->address());
        for (int message = 0; message < 3; ++message) hosts.deliver(*a, to_b, *b, to_a, 300'000);
        const auto begin = hosts.fabric.now();
        bool cut = when < 0;
        const auto data = pattern(300'000);
        const ConstBuffer out(data);
        std::vector<std::byte> got(data.size());
        const MutableBuffer in(got);
        auto receive = b->irecv(to_a, 1, {&in, 1}, nullptr);
        auto send = a->isend(to_b, 1, {&out, 1}, nullptr);
        hosts.look_each = 1000;
        const auto over = [&](base::Nanoseconds linger) {
            if (!cut && hosts.fabric.now() - begin >= when) {
                hosts.fabric.cut("a/eth1", "b/eth1", test::sim::Cut::loud);
                cut = true;
            }
            if (send.active()) static_cast<void>(a->test(send));
            if (receive.active()) static_cast<void>(b->test(receive));
            return cut && !send.active() && !receive.active() && hosts.fabric.now() - begin >= linger;
        };
        hosts.until({a.get(), b.get()}, [&] { return over(0); });
        if (when < 0) took = hosts.fabric.now() - begin;
        hosts.until({a.get(), b.get()},
                    [&] { return over(5 * base::millisecond); });  // what is put again does its harm
        CHECK(test::same(got, data));
        for (const auto& rail : a->traffic()) {
            if (rail.rail == "sim:eth0") CHECK(rail.links_lost == 0);
        }
    }
    CHECK(took > 100'000);
}

// ... and that nothing of them is lost or believed, whatever happens meanwhile.
#include "engine/inlined_world.hpp"

namespace railmux {

using inlined::most;
using inlined::Network;
using inlined::World;
using test::sim::simple_timing;
using transports::FaultPlan;

namespace {

/// Messages of many sizes with one tag, expected and not, into one piece and into several, from somebody and from anybody.
void exchange(World& world) {
    constexpr std::array<std::size_t, 7> sizes = {17'000, 8, 40'000, most + 1, 1000, 300'000, 33'000};
    std::vector<std::vector<std::byte>> data, got;
    std::vector<Request> sends, receives;
    const auto post = [&](std::size_t i) {
        got.emplace_back(sizes[i]);
        const auto from = i % 2 == 0 ? world.to_a : Peer();
        const std::span whole(got.back());
        const auto cut = std::min<std::size_t>(whole.size(), i < 4 ? 700 : most);
        const std::array<MutableBuffer, 2> in{whole.first(cut), whole.subspan(cut)};
        receives.push_back(i % 3 == 0 ? world.b->irecv(from, TagMatch(7), in, nullptr) : world.receive(7, whole, from));
    };
    for (std::size_t i = 0; i < 3; ++i) post(i);
    for (std::size_t i = 0; i < sizes.size(); ++i) data.push_back(test::pattern(sizes[i], static_cast<unsigned>(i)));
    for (const auto& one : data) sends.push_back(world.send(7, one));
    const auto later = world.hosts.fabric.now() + base::millisecond;
    world.until([&] { return world.hosts.fabric.now() > later; });
    for (std::size_t i = 3; i < sizes.size(); ++i) post(i);
    for (auto& send : sends) REQUIRE(world.finish(*world.a, send).ok());
    for (auto& receive : receives) REQUIRE(world.finish(*world.b, receive).ok());
    CHECK(std::ranges::equal(got, data, test::same));
}

}  // namespace

TEST_CASE("inlined: messages of all kinds, put and got", "[engine]") {
    for (const bool get : {false, true}) {
        for (const char* scheme : {"write", "read"}) {
            INFO(get << " " << scheme);
            World world("always", {Network{.get = get}, Network{}}, scheme);
            exchange(world);
        }
    }
}

TEST_CASE("inlined: a receive may have less room than was sent, or none", "[engine]") {
    for (const bool late : {false, true}) {
        for (const std::size_t room :
             {std::size_t{0}, std::size_t{100}, most - 1, most, most + 1, std::size_t{50'000}}) {
            INFO(late << " " << room);
            World world("always", {Network{}});
            const auto data =
                test::pattern(GENERATE(60'000U, 200'000U));  // goes ahead as a whole, or only a part of it
            std::vector<std::byte> got(room + 100, std::byte{0xee});
            Request receive, send;
            if (late) {
                send = world.send(3, data);
                world.until([&] { return world.b->probe(Peer(), TagMatch(3)).has_value(); });
                CHECK(world.b->probe(world.to_a, TagMatch(3))->message == data.size());
            }
            receive = world.receive(3, std::span(got).first(room), Peer());
            if (!late) send = world.send(3, data);
            const auto status = world.finish(*world.b, receive);
            CHECK(status.truncated());
            CHECK(status.bytes == room);
            CHECK(status.message == data.size());
            CHECK(world.finish(*world.a, send).ok());
            CHECK(std::equal(data.begin(), data.begin() + static_cast<std::ptrdiff_t>(room), got.begin()));
            CHECK(std::ranges::count(std::span(got).subspan(room), std::byte{0xee}) == 100);
            world.deliver(60'000);
        }
    }
}

TEST_CASE("inlined: who takes or drops a message between its announcement and its first bytes", "[engine]") {
    for (const bool takes : {true, false}) {
        for (int looks = 0; looks < 16; ++looks) {
            World world("always", {Network{}});
            const auto data = test::pattern(GENERATE(60'000U, 200'000U));
            std::vector<std::byte> got(data.size());
            auto send = world.send(3, data);
            std::optional<Message> message;
            world.until([&] { return (message = world.b->mprobe(world.to_a, TagMatch(3))).has_value(); });
            int look = 0;
            world.until([&] { return ++look > looks; });
            if (takes) {
                auto receive = world.b->irecv(*message, got, nullptr);
                CHECK(world.finish(*world.b, receive).ok());
                CHECK(test::same(got, data));
            }
            message.reset();
            CHECK(world.finish(*world.a, send).ok());
            world.deliver(60'000);
        }
    }
}

TEST_CASE("inlined: what nobody receives is bounded as eager messages are", "[engine]") {
    World world("always", std::vector<Network>(2));
    constexpr std::size_t window = 1 << 20;  // eager.window
    const auto before = world.sent();
    const auto data = test::pattern(64'000);
    std::vector<Request> sends;
    for (int i = 0; i < 300; ++i) sends.push_back(world.send(5, data));
    const auto rest = world.hosts.fabric.now() + 100 * base::millisecond;
    world.until([&] { return world.hosts.fabric.now() > rest; });
    CHECK(world.sent() - before > window / 2);
    CHECK(world.sent() - before <= window);
    std::vector<std::byte> got(data.size());
    for (auto& send : sends) {
        auto receive = world.receive(5, got, world.to_a);
        REQUIRE(world.finish(*world.b, receive).ok());
        REQUIRE(test::same(got, data));
        REQUIRE(world.finish(*world.a, send).ok());
    }
    const auto again = world.sent();
    world.deliver(64'000);  // for which there is credit again
    CHECK(world.sent() - again == 64'000);
}

TEST_CASE("inlined: links die at every step, and every message arrives whole", "[engine]") {
    for (const bool get : {false, true}) {
        for (const char* rail : {"a/eth0", "b/eth0", "b/eth1"}) {
            for (int step = 20; step < 200; step += 3) {
                const auto plan = "kill_link@" + std::to_string(step);
                INFO(rail << " " << plan << " " << get);
                World world("always", {Network{.get = get}, Network{}}, "read", {{rail, FaultPlan::parse(plan)}}, 1,
                            "round_robin");
                exchange(world);
            }
        }
    }
}

TEST_CASE("inlined: with faults of all kinds on all rails every message arrives whole", "[engine]") {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const auto plans = test::faults_of_all_kinds(seed);
        INFO(seed);
        World world("always", {Network{.get = seed % 3 == 0}, Network{}}, "read", plans, seed,
                    seed % 2 == 0 ? "vft" : "round_robin");
        exchange(world);
    }
}

TEST_CASE("inlined: who is lost in the middle fails what waits for the rest, and a new session begins afresh",
          "[engine]") {
    for (int looks = 0; looks < 60; looks += 2) {
        INFO(looks);
        World world("always", {Network{}});
        const auto data = test::pattern(200'000);
        std::vector<std::byte> got(data.size()), rest(100);
        auto receive = world.receive(1, got, world.to_a);
        auto truncated = world.receive(2, rest, world.to_a);
        auto sends = std::array{world.send(1, data), world.send(2, std::span(data).first(60'000)), world.send(3, data)};
        int look = 0;
        world.until([&] { return ++look > looks; });
        world.hosts.fabric.cut("a/eth0", "b/eth0", test::sim::Cut::loud);
        const auto often = std::exchange(world.hosts.look_each, base::millisecond);  // it takes many seconds to give up
        const auto end = [](const Status& status) {
            return status.ok() || status.truncated() || status.code == ErrorCode::peer_lost ||
                   status.code == ErrorCode::unreachable;
        };
        for (auto* one : {&receive, &truncated}) CHECK(end(world.finish(*world.b, *one)));
        for (auto& send : sends) CHECK(end(world.finish(*world.a, send)));
        const auto kept = got;
        world.hosts.look_each = often;
        world.hosts.fabric.restore("a/eth0", "b/eth0");
        world.deliver(300'000);
        CHECK(got == kept);
    }
}

TEST_CASE("inlined: bytes that were not announced, or not as many, end their link and nothing else", "[engine]") {
    test::SimHosts hosts;
    hosts.settings.emplace_back("probe", "off");
    for (const char* host : {"victim", "hostile"}) {
        hosts.fabric.add_rail(host,
                              {.device = "eth0", .network = "net0", .timing = simple_timing(2000, 300, 300, 400, 1.0)});
    }
    const auto victim = hosts.start("victim", "vft");
    test::Hostile hostile(hosts, *victim);
    const auto now = [&] { return hosts.fabric.now(); };
    const auto until = [&](auto holds) {
        hosts.until({victim.get()}, [&] {
            hostile.poll(now());
            return holds();
        });
    };
    const auto say = [&](rails::FrameType type, std::span<const std::byte> body) {
        until([&] { return hostile.connected(now()); });
        hostile.say(type, rails::frame_flag::ordered, body, now());
        const auto before = hostile.links_lost;
        const auto later = now() + 5 * base::millisecond;
        until([&] { return now() > later; });
        return hostile.links_lost == before;
    };
    const auto rts = [&](std::uint32_t inlined, std::uint64_t all = 200'000) {
        std::array<std::byte, messaging::RtsBody::size> body{};
        messaging::write_rts(body.data(), {.tag = 1, .bytes = all, .sender = {}, .inlined = inlined}, {});
        return say(rails::FrameType::rts, body);
    };
    const auto bytes = [&](std::size_t count) { return say(rails::FrameType::inlined, test::pattern(count)); };
    CHECK_FALSE(bytes(100));
    CHECK(rts(0));
    CHECK_FALSE(bytes(100));
    CHECK(rts(100));
    CHECK_FALSE(rts(100));  // before those of the first
    CHECK_FALSE(bytes(101));
    CHECK_FALSE(bytes(0));
    CHECK(bytes(60));
    CHECK_FALSE(bytes(41));
    CHECK(bytes(40));
    CHECK_FALSE(bytes(40));
    CHECK_FALSE(rts(rails::largest_inlined + 1));
    CHECK(rts(rails::largest_inlined));
    for (int i = 0; i < 8; ++i) CHECK(bytes(messaging::largest_small));
    CHECK_FALSE(bytes(1));
    CHECK_FALSE(rts(101, 100));
    CHECK(rts(100, 100));  // all there is
    CHECK(bytes(99));
    CHECK(victim->probe(Peer(), TagMatch(1)));
    // What nobody received is dropped.
    while (auto message = victim->mprobe(Peer(), TagMatch(1))) message.reset();
    CHECK_FALSE(victim->probe(Peer(), TagMatch(1)));
}

}  // namespace railmux

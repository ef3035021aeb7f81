// Large messages of which the first bytes follow the announcement (bulk.inlined).
#include <algorithm>

#include "engine/hostile.hpp"
#include "messaging/wire.hpp"

namespace railmux {

namespace {

using test::sim::simple_timing;
using transports::FaultPlan;

constexpr std::size_t most = 16 * 1024;  // eager.max

struct Network {
    transports::sim::Timing timing = simple_timing(10'000, 300, 300, 400, 1.0);
    bool get = false;
    bool by_processors = false;
};

/// Hosts a and b on these networks.
struct World {
    World(std::string_view inlined, const std::vector<Network>& networks, std::string_view scheme = "auto",
          const test::FaultyTransport::Plans& plans = {}, std::uint64_t seed = 1, std::string_view policy = "vft",
          std::string_view eager_max = {})
        : hosts(seed, plans) {
        for (std::size_t i = 0; i < networks.size(); ++i) {
            for (const char* host : {"a", "b"}) {
                test::sim::RailOptions options{.device = "eth" + std::to_string(i),
                                               .network = "net" + std::to_string(i)};
                options.timing = networks[i].timing;
                options.get = networks[i].get;
                options.by_processors = networks[i].by_processors;
                hosts.fabric.add_rail(host, options);
            }
        }
        hosts.settings = {
            {"bulk.inlined", std::string(inlined)}, {"bulk.scheme", std::string(scheme)}, {"recover.patience", "1s"}};
        if (!eager_max.empty()) hosts.settings.emplace_back("eager.max", std::string(eager_max));
        hosts.look_each = 1000;
        a = hosts.start("a", policy);
        b = hosts.start("b", policy);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        deliver(100'000);  // so that all links are up
    }
    void deliver(std::size_t bytes) { hosts.deliver(*a, to_b, *b, to_a, bytes); }
    struct Lone {
        base::Nanoseconds took = base::second;
        std::uint64_t moved = ~std::uint64_t{0};  // bytes put and got: all but those inlined
    };
    /// What lone messages take: the least of several.
    [[nodiscard]] Lone lone(std::size_t bytes) {
        Lone least;
        for (int i = 0; i < 10; ++i) {
            const auto rest = hosts.fabric.now() + 10 * base::millisecond;
            until([&] { return hosts.fabric.now() > rest; });
            const auto begin = hosts.fabric.now();
            const auto before = moved();
            deliver(bytes);
            least.took = std::min(least.took, hosts.fabric.now() - begin);
            least.moved = std::min(least.moved, moved() - before);
        }
        return least;
    }
    [[nodiscard]] std::uint64_t moved() const {
        std::uint64_t bytes = 0;
        for (const auto& rail : a->rails()) {
            const auto counters = hosts.fabric.counters("a/" + rail.device);
            bytes += counters.put_bytes + counters.get_bytes;
        }
        return bytes;
    }
    template <typename Holds>
    void until(Holds holds) {
        hosts.until({a.get(), b.get()}, holds);
    }
    Request send(Tag tag, std::span<const std::byte> data) {
        const ConstBuffer out(data);
        return a->isend(to_b, tag, {&out, 1}, nullptr);
    }
    Request receive(Tag tag, std::span<std::byte> room, Peer from) {
        const MutableBuffer in(room);
        return b->irecv(from, TagMatch(tag), {&in, 1}, nullptr);
    }
    Status finish(messaging::Engine& side, Request& request) {
        std::optional<Status> status;
        until([&] { return (status = side.test(request)).has_value(); });
        return *status;
    }
    [[nodiscard]] std::uint64_t sent() const {
        std::uint64_t bytes = 0;
        for (const auto& rail : a->traffic()) bytes += rail.sent_bytes;
        return bytes;
    }

    test::SimHosts hosts;
    std::unique_ptr<messaging::Engine> a, b;
    Peer to_b, to_a;
};

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

TEST_CASE("inlined: an rts without inlined bytes is what it was before there were any", "[engine]") {
    using messaging::RtsBody;
    const std::vector<rails::BulkTarget::Key> keys = {{.rail = 3, .key = {7, 8}}};
    std::vector<std::byte> body(RtsBody::size + messaging::bulk_key_size);
    messaging::write_rts(body.data(), {.tag = 5, .bytes = 100'000, .sender = {1, 2}}, keys);
    CHECK(base::load<std::uint64_t>(body.data() + 24) == 1);  // the count
    std::vector<rails::BulkTarget::Key> read;
    const auto parses = [&](std::uint64_t bytes, std::uint32_t inlined) {
        messaging::write_rts(body.data(), {.tag = 5, .bytes = bytes, .sender = {1, 2}, .inlined = inlined}, keys);
        const auto rts = messaging::parse_rts(body, read);
        CHECK((!rts || (rts->inlined == inlined && read.size() == 1)));
        return rts.has_value();
    };
    CHECK(parses(100'000, 0));
    CHECK(parses(0, 0));
    CHECK(parses(100'000, most));
    CHECK(parses(most + 1, most));
    CHECK(parses(100'000, rails::largest_inlined));
    CHECK_FALSE(parses(100'000, rails::largest_inlined + 1));
    CHECK_FALSE(parses(0, 1));
    CHECK_FALSE(parses(most, most + 1));
    CHECK_FALSE(parses(most, most));  // nothing is to be got of it, but there are keys
    messaging::write_rts(body.data(), {.tag = 5, .bytes = most, .inlined = most}, {});
    const auto whole = messaging::parse_rts(std::span(body).first(RtsBody::size), read);
    REQUIRE(whole);
    CHECK(whole->whole());
}

TEST_CASE("inlined: a lone message is there sooner, by what goes while the answer is awaited", "[engine]") {
    for (const std::size_t bytes : {70'000U, 200'000U}) {
        const auto never = World("never", {Network{}}).lone(bytes);
        const auto now = World("auto", {Network{}}).lone(bytes);
        INFO(bytes << " bytes: " << never.took << " ns, " << now.took << " ns");
        CHECK(never.moved == bytes);
        CHECK(now.moved == bytes - most);
        CHECK(now.took < never.took - 10'000);  // of 20 us that the answer takes
        CHECK(now.took > never.took - 25'000);
    }
}

TEST_CASE("inlined: a lone message that is not much larger than a frame is not asked for at all", "[engine]") {
    for (const std::size_t bytes : {17'000U, 20'000U, 33'000U, 64'000U}) {
        const auto never = World("never", {Network{}}).lone(bytes);
        const auto now = World("auto", {Network{}}).lone(bytes);
        INFO(bytes << " bytes: " << never.took << " ns, " << now.took << " ns");
        CHECK(never.moved == bytes);
        CHECK(now.moved == 0);
        CHECK(now.took < never.took - 20'000);  // announcement and answer
    }
}

TEST_CASE("inlined: by default nothing is where it costs a copy, or nothing would be saved", "[engine]") {
    const auto all_asked_for = [](const std::vector<Network>& networks, std::size_t bytes) {
        CHECK(World("auto", networks).lone(bytes).moved == bytes);
    };
    const Network reads{.get = true};
    const Network slow{.timing = simple_timing(2'000, 300, 300, 400, 80.0)};  // 100 Mbit/s: the answer is there at once
    all_asked_for({reads}, 64'000);
    all_asked_for({Network{}, reads}, 64'000);
    all_asked_for({Network{}, Network{}}, 64'000);
    all_asked_for({slow}, 64'000);
    all_asked_for({Network{.by_processors = true}}, 64'000);
    all_asked_for({Network{}}, 2'000'000);
}

TEST_CASE("inlined: who sets eager.max has larger messages asked for", "[engine]") {
    for (const char* inlined : {"auto", "always"}) {
        World world(inlined, {Network{}}, "auto", {}, 1, "vft", "4K");
        CHECK(world.lone(20'000).moved == 20'000 - 4096);
        CHECK(world.lone(64'000).moved == 64'000 - 4096);
    }
}

TEST_CASE("inlined: a smaller message just before makes no difference", "[engine]") {
    World world("auto", {Network{}});
    static_cast<void>(world.lone(20'000));
    const auto rest = world.hosts.fabric.now() + 10 * base::millisecond;
    world.until([&] { return world.hosts.fabric.now() > rest; });
    const auto header = test::pattern(2000);
    const auto data = test::pattern(20'000);
    const auto before = world.moved();
    auto first = world.send(1, header);
    CHECK_FALSE(world.a->explain(world.to_b, data.size()).rendezvous);
    CHECK(world.a->explain(world.to_b, 2'000'000).rendezvous);
    auto second = world.send(1, data);
    std::vector<std::byte> got(data.size());
    for (auto* send : {&first, &second}) {
        auto receive = world.receive(1, got, world.to_a);
        CHECK(world.finish(*world.b, receive).ok());
        CHECK(world.finish(*world.a, *send).ok());
    }
    CHECK(test::same(got, data));
    CHECK(world.moved() == before);
}

TEST_CASE("inlined: of a stream of messages only the first goes ahead", "[engine]") {
    World world("auto", {Network{}});
    static_cast<void>(world.lone(64'000));
    const auto rest = world.hosts.fabric.now() + 10 * base::millisecond;  // until that is acknowledged
    world.until([&] { return world.hosts.fabric.now() > rest; });
    const auto data = test::pattern(64'000);
    std::vector<std::vector<std::byte>> got(64, std::vector<std::byte>(data.size()));
    std::vector<Request> sends, receives;
    const auto before = world.moved();
    for (auto& one : got) receives.push_back(world.receive(1, one, world.to_a));
    for (std::size_t i = 0; i < got.size(); ++i) sends.push_back(world.send(1, data));
    for (auto& send : sends) REQUIRE(world.finish(*world.a, send).ok());
    for (auto& receive : receives) REQUIRE(world.finish(*world.b, receive).ok());
    for (const auto& one : got) REQUIRE(test::same(one, data));
    CHECK(world.moved() - before == (got.size() - 1) * data.size());
}

TEST_CASE("inlined: while another transfer is under way, to whomever, nothing goes ahead", "[engine]") {
    World world("auto", {Network{}});
    world.hosts.fabric.add_rail("c", {.device = "eth0", .network = "net0", .timing = Network{}.timing});
    const auto c = world.hosts.start("c", "vft");
    const auto to_c = world.a->add_peer(c->address());
    const auto from_a = c->add_peer(world.a->address());
    const auto moved = [&](std::size_t bytes) {
        const auto before = world.moved();
        world.hosts.deliver(*world.a, to_c, *c, from_a, bytes);
        return world.moved() - before;
    };
    static_cast<void>(world.lone(64'000));
    const auto rest = world.hosts.fabric.now() + 100 * base::millisecond;
    static_cast<void>(moved(64'000));
    world.hosts.until({world.a.get(), c.get()}, [&] { return world.hosts.fabric.now() > rest; });
    CHECK(moved(64'000) == 0);
    const auto data = test::pattern(64'000);
    auto send = world.send(9, data);  // which nobody receives yet
    CHECK(moved(64'000) == 64'000);
    std::vector<std::byte> got(data.size());
    auto receive = world.receive(9, got, world.to_a);
    CHECK(world.finish(*world.b, receive).ok());
    CHECK(world.finish(*world.a, send).ok());
    CHECK(moved(64'000) == 0);
}

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
        const auto end = [](const Status& status) {
            return status.ok() || status.truncated() || status.code == ErrorCode::peer_lost ||
                   status.code == ErrorCode::unreachable;
        };
        for (auto* one : {&receive, &truncated}) CHECK(end(world.finish(*world.b, *one)));
        for (auto& send : sends) CHECK(end(world.finish(*world.a, send)));
        const auto kept = got;
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
    const auto rts = [&](std::uint32_t inlined, std::uint64_t all = 100'000) {
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
    for (int i = 0; i < 4; ++i) CHECK(bytes(messaging::largest_small));
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

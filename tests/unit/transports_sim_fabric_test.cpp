// The fabric's own verbs: cuts, rails that go, networks, hosts; and that it carries many messages quickly.
#include <catch2/catch.hpp>

#include <array>
#include <string>
#include <vector>

#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::transports;

namespace {

/// Two rails of two hosts and all their events, kind by kind as letters; the acceptor accepts everything.
struct Net {
    Net() {
        a = fabric.open("a", sim::RailOptions{});
        b = fabric.open("b", sim::RailOptions{});
    }
    LinkId connect() {
        const auto link = a->connect(b->address(), {});
        run();
        return link;
    }
    std::size_t send(LinkId link, std::size_t count = 1) {
        const Segment segment{bytes.data(), bytes.size()};
        const std::vector<Work> works(count, Work{.link = link, .segments = {&segment, 1}});
        return a->post(works);
    }
    void run() {
        do {
            poll(*a, at_a);
            poll(*b, at_b);
        } while (fabric.advance_to_next_event());
        poll(*a, at_a);
        poll(*b, at_b);
    }
    void poll(Rail& rail, std::string& seen) {
        std::array<Event, 64> events;
        while (const auto count = rail.poll(events)) {
            for (const auto& event : std::span(events).first(count)) {
                seen += letter(event);
                if (event.kind == EventKind::connect_request) rail.accept(event.link, {});
                if (event.kind == EventKind::link_down || event.kind == EventKind::rail_down) cause = event.text;
            }
        }
    }
    static char letter(const Event& event) {
        if (event.kind == EventKind::done) return event.status == WorkStatus::ok ? 'o' : 'l';
        return "?rnUDXBcd"[static_cast<std::size_t>(event.kind)];
    }
    [[nodiscard]] std::string news_a() { return std::exchange(at_a, {}); }
    [[nodiscard]] std::string news_b() { return std::exchange(at_b, {}); }

    sim::Fabric fabric;
    std::unique_ptr<Rail> a, b;
    std::string at_a, at_b, cause;
    std::vector<std::byte> bytes = std::vector<std::byte>(100);
};

}  // namespace

TEST_CASE("a loud cut ends links and refuses new ones until restored", "[sim]") {
    Net net;
    const auto link = net.connect();
    CHECK(net.news_a() == "U");
    CHECK(net.news_b() == "cU");
    CHECK(net.send(link, 3) == 3);
    net.fabric.cut("b/eth0", "a/eth0", sim::Cut::loud);
    net.run();
    CHECK(net.news_a() == "lllD");
    CHECK(net.news_b() == "D");
    CHECK(net.cause == "the path is cut");
    net.connect();
    CHECK(net.news_a() == "D");
    net.fabric.restore("a/eth0", "b/eth0");
    net.connect();
    CHECK(net.news_a() == "U");
    CHECK(net.news_b() == "cU");
}

TEST_CASE("a silent cut says nothing; works are done and do not arrive", "[sim]") {
    Net net;
    const auto link = net.connect();
    net.send(link, 2);
    net.run();
    CHECK(net.news_a() == "Uoo");
    CHECK(net.news_b() == "cUrr");
    net.send(link, 2);
    net.fabric.cut("a/eth0", "b/eth0", sim::Cut::silent);
    net.run();
    CHECK(net.news_a() == "oo");
    CHECK(net.news_b().empty());
    const auto attempt = net.connect();
    CHECK(net.news_a().empty());
    net.fabric.restore("a/eth0", "b/eth0");
    net.send(link);
    net.run();
    CHECK(net.news_a() == "o");
    CHECK(net.news_b().empty());  // the old link stays dead
    net.a->disconnect(link);
    net.a->disconnect(attempt);
    net.run();
    CHECK(net.news_a() == "DD");
    net.send(net.connect());
    net.run();
    CHECK(net.news_a() == "Uo");
    CHECK(net.news_b() == "cUr");
}

TEST_CASE("a rail goes down after its links, and opens again when restored", "[sim]") {
    Net net;
    const auto link = net.connect();
    net.send(link, 2);
    net.fabric.rail_down("b/eth0", "cable pulled");
    net.run();
    CHECK(net.news_a() == "UllD");
    CHECK(net.news_b() == "cUDX");
    CHECK(net.fabric.scan("b").at(0).reason == "down: cable pulled");
    net.b.reset();
    CHECK_THROWS_WITH(net.fabric.open("b", "eth0"), Catch::Contains("cable pulled"));
    net.fabric.restore_rail("b/eth0");
    net.b = net.fabric.open("b", "eth0");
    net.send(net.connect());
    net.run();
    CHECK(net.news_a() == "Uo");
    CHECK(net.news_b() == "cUr");
}

TEST_CASE("a rail that stays open says when it is up again", "[sim]") {
    Net net;
    static_cast<void>(net.connect());
    net.fabric.rail_down("b/eth0", "cable pulled");
    net.run();
    CHECK(net.news_b() == "cUDX");
    net.fabric.restore_rail("b/eth0");
    net.send(net.connect());
    net.run();
    CHECK(net.news_b() == "BcUr");
}

TEST_CASE("a cut that is silent leaves what is sent unconfirmed", "[sim]") {
    const auto timing = sim::simple_timing(2000, 300, 300, 400, 1.0);
    sim::Fabric fabric;
    const auto a = fabric.open("a", {.timing = timing, .confirms = true});
    const auto b = fabric.open("b", {.timing = timing, .confirms = true});
    std::array<Event, 8> events;
    const auto link = a->connect(b->address(), {});
    fabric.advance(base::millisecond);
    REQUIRE(b->poll(events) == 1);
    b->accept(events[0].link, {});
    fabric.advance(base::millisecond);
    REQUIRE(a->poll(events) == 1);
    std::array<std::byte, 8> bytes{};
    const Segment segment{bytes.data(), bytes.size()};
    const Work work{.link = link, .segments = {&segment, 1}};
    REQUIRE(a->post({&work, 1}) == 1);
    CHECK(a->pulse(link).outstanding);
    fabric.advance(base::millisecond);
    CHECK(a->poll(events) == 1);
    CHECK_FALSE(a->pulse(link).outstanding);  // whether or not b looks
    CHECK(a->pulse(link).heard > 0);
    fabric.cut("a/eth0", "b/eth0", sim::Cut::silent);
    CHECK_FALSE(a->pulse(link).outstanding);
    REQUIRE(a->post({&work, 1}) == 1);
    fabric.advance(base::second);
    const auto before = a->pulse(link);
    const auto after = a->pulse(link);
    CHECK(after.outstanding);
    CHECK(after.heard == before.heard);
    CHECK(after.asked > before.asked);
    CHECK_FALSE(a->pulse({.index = 99}).known);
}

TEST_CASE("rails reach each other on one network only", "[sim]") {
    sim::Fabric fabric;
    const auto red = fabric.open("a", {.device = "r", .network = "red"});
    const auto blue = fabric.open("b", {.device = "b", .network = "blue"});
    CHECK(red->reach(blue->address()).reach == Reach::never);
    CHECK(red->reach(blue->address()).why == "not on network red but on blue");
    CHECK(red->reach(red->address()).reach == Reach::direct);
    CHECK_THROWS_AS(fabric.add_rail("a", {.device = "r"}), Error);
    CHECK_THROWS_AS(fabric.cut("a/r", "a/none", sim::Cut::loud), Error);
}

TEST_CASE("the transport lists a host's rails", "[sim]") {
    sim::Fabric fabric;
    fabric.add_rail("a", {.device = "eth0", .speed_bps = 10'000'000'000});
    fabric.add_rail("a", {.device = "eth1"});
    fabric.add_rail("b", {.device = "eth0"});
    const auto transport = sim::make_transport(fabric, "a");
    const auto devices = transport->scan();
    REQUIRE(devices.size() == 2);
    CHECK(devices[0].name == "sim:eth0");
    CHECK(devices[0].speed_bps == 10'000'000'000);
    CHECK(transport->open(devices[1])->traits().name == "sim:eth1");
    const auto none = sim::make_transport(fabric, "c")->scan();
    REQUIRE(none.size() == 1);
    CHECK_FALSE(none[0].usable);
}

TEST_CASE("a rail that is full serves its links in the order posted", "[sim]") {
    Net net;
    const auto one = net.connect();
    const auto two = net.connect();
    net.at_b.clear();
    const Segment segment{net.bytes.data(), net.bytes.size()};
    std::vector<Work> works;
    for (std::uint64_t i = 0; i < 10; ++i) {
        works.push_back({.link = i % 2 == 0 ? one : two, .segments = {&segment, 1}, .cookie = i});
    }
    REQUIRE(net.a->post(works) == 10);
    std::vector<std::uint64_t> order;
    std::array<Event, 4> events;
    while (net.fabric.advance_to_next_event()) {
        for (const auto& event : std::span(events).first(net.a->poll(events))) order.push_back(event.cookie);
    }
    CHECK(order == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("a million messages in a moment", "[sim]") {
    Net net;
    const auto link = net.connect();
    std::size_t posted = 0, received = 0;
    constexpr std::size_t count = 1'000'000;
    std::array<Event, 64> events;
    while (received < count) {
        if (posted < count) posted += net.send(link, std::min<std::size_t>(32, count - posted));
        static_cast<void>(net.fabric.advance_to_next_event());
        static_cast<void>(net.a->poll(events));
        received += net.b->poll(events);
    }
    CHECK(net.fabric.counters("a/eth0").frames == count);
    CHECK(net.fabric.counters("a/eth0").frame_bytes == 100 * count);
}

// Full probes of links in use: what they measure of large messages, and what is left of them afterwards.
#include <array>
#include <atomic>
#include <iterator>
#include <sstream>
#include <thread>

#include "engine/pair.hpp"
#include "engine/sim_pair.hpp"

using namespace railmux;
using test::Pair;
using test::SimHosts;

namespace {

constexpr std::uint64_t largest = 1 << 20;

std::uint64_t largest_point(const LinkAssessment& link) {
    std::uint64_t most = 0;
    for (const auto& point : link.points) most = std::max(most, point.bytes);
    return most;
}

/// One rail of known parameters between two hosts.
struct OneRail {
    OneRail() {
        hosts.look_each = 200;
        for (const char* host : {"a", "b"})
            hosts.fabric.add_rail(host, {.device = "eth0", .network = "net", .timing = timing});
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
        hosts.deliver(*a, to_b, *b, to_a, 8);
    }

    LinkAssessment assess(messaging::Engine& from, Peer to, messaging::Engine& other, std::uint64_t max_bytes = 0) {
        const auto meanwhile = hosts.keep_going(other);
        auto links = from.assess(to, "all", {.n = 4, .sizes = 6, .rounds = 4, .max_bytes = max_bytes});
        REQUIRE(links.size() == 1);
        return std::move(links.front());
    }

    test::sim::Timing timing = test::sim::simple_timing(5000, 300, 300, 400, 0.5);
    SimHosts hosts;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;
};

/// What its report says of what the only link has cost: frames, bytes, microseconds.
std::array<double, 3> probe_cost(messaging::Engine& engine) {
    std::istringstream report(engine.report());
    for (std::string line; std::getline(report, line);) {
        std::istringstream words(line);
        const std::vector<std::string> word{std::istream_iterator<std::string>(words), {}};
        if (word.front() == "probing") return {std::stod(word[2]), std::stod(word[3]), std::stod(word[4])};
    }
    return {};  // no line: nothing
}

void connect(Pair& pair) {
    auto first = pair.a.isend(pair.to_b, 1, ConstBuffer{});
    CHECK(pair.finish(pair.a, first).ok());
}

}  // namespace

TEST_CASE("a full probe measures large messages as they are sent: put into their place", "[engine]") {
    OneRail rail;
    const auto before = rail.a->traffic().front();
    // One after the other, from either side: what each opened for the puts of the other is closed, and opened again.
    for (int times = 0; times < (test::thinned > 1 ? 2 : 3); ++times) {
        for (const bool from_a : {true, false}) {
            INFO("measurement " << times << " of " << (from_a ? "a" : "b"));
            const auto link =
                from_a ? rail.assess(*rail.a, rail.to_b, *rail.b) : rail.assess(*rail.b, rail.to_a, *rail.a);
            CHECK(largest_point(link) == largest);
            const double alone = 5000 + 600 + 0.5 * static_cast<double>(largest);
            CHECK(link.link.model.predict(largest).delivery.count() == Approx(alone).epsilon(0.03));
            CHECK(link.link.model.range(largest).G.ns == Approx(0.5).epsilon(0.03));
        }
    }
    CHECK(rail.a->traffic().front().sent_bytes == before.sent_bytes);  // nothing of that is the application's
    CHECK(largest_point(rail.assess(*rail.a, rail.to_b, *rail.b, 8192)) == 8192);
    rail.hosts.deliver(*rail.a, rail.to_b, *rail.b, rail.to_a, 3 << 20);
}

TEST_CASE("what a measurement costs stands in the report of either side", "[engine]") {
    OneRail rail;
    const auto of_a = probe_cost(*rail.a), of_b = probe_cost(*rail.b);
    const auto link = rail.assess(*rail.a, rail.to_b, *rail.b, 8192);
    const auto by_a = probe_cost(*rail.a), by_b = probe_cost(*rail.b);
    const auto us = static_cast<double>(link.spent.cpu.count()) / 1000;
    CHECK(link.spent.messages > link.points.size());  // of a train's messages each is one
    CHECK(by_a[0] - of_a[0] >= static_cast<double>(link.spent.messages));
    CHECK(by_a[1] - of_a[1] >= static_cast<double>(link.spent.bytes));
    CHECK(us > 0);
    CHECK(by_a[2] - of_a[2] >= Approx(us).margin(0.02));                  // as printed
    CHECK(by_b[0] - of_b[0] >= static_cast<double>(link.points.size()));  // it answered each train
    CHECK(by_b[1] > of_b[1]);  // in this world no time passes while it does so
}

TEST_CASE("a measurement takes from its beginning, with what comes before the first train, to its end", "[engine]") {
    OneRail rail;
    const auto meanwhile = rail.hosts.keep_going(*rail.b);
    std::vector<base::Nanoseconds> reported;
    const auto note = [&](std::string_view, double) { reported.push_back(rail.hosts.fabric.now()); };
    const auto links = rail.a->assess(rail.to_b, "all", {.n = 4, .sizes = 6, .rounds = 4, .progress = note});
    REQUIRE(largest_point(links.at(0)) == largest);
    const auto took = reported.back() - reported.front();
    CHECK(links[0].took.count() < took + 2000);  // it is first reported a few looks later
    CHECK(links[0].took.count() > took - 5000);  // where to put large messages was heard after twice that
}

TEST_CASE("who is told how far a measurement is must not wait", "[engine]") {
    OneRail rail;
    const auto meanwhile = rail.hosts.keep_going(*rail.b);
    int refused = 0;
    const auto wait = [&](std::string_view, double) {
        try {
            rail.a->flush(std::chrono::nanoseconds(0));
        } catch (const Error& error) {
            refused += error.code() == ErrorCode::invalid_argument ? 1 : 0;
        }
    };
    const auto links = rail.a->assess(rail.to_b, "all", {.n = 4, .sizes = 6, .rounds = 4, .progress = wait});
    CHECK(links.size() == 1);
    CHECK(refused > 1);
    CHECK(rail.a->flush(std::chrono::seconds(1)));
}

TEST_CASE("how easily a change of protocol is seen is up to who measures", "[engine]") {
    OneRail rail;
    auto above = rail.timing.ranges.front();
    rail.timing.ranges.front().up_to_bytes = 8192;
    above.L += 1500;
    rail.timing.ranges.push_back(above);
    for (const auto& [from, to] : {std::pair{"a/eth0", "b/eth0"}, std::pair{"b/eth0", "a/eth0"}})
        rail.hosts.fabric.set_timing(from, to, rail.timing);
    const auto ranges = [&](std::uint32_t sizes, std::uint32_t look_ahead, double factor) {
        const auto meanwhile = rail.hosts.keep_going(*rail.b);
        const auto links = rail.a->assess(
            rail.to_b, "all",
            {.n = 4, .sizes = sizes, .rounds = 4, .max_bytes = 16384, .look_ahead = look_ahead, .factor = factor});
        REQUIRE(links.size() == 1);
        return links.front().link.model.ranges.size();
    };
    CHECK(ranges(13, 4, 2) == 2);
    CHECK(ranges(13, 16, 2) == 1);  // there are not so many sizes beyond it
    const auto usual = ranges(16, 4, 2);
    const auto more = ranges(16, 4, 1.1);
    CHECK(more > usual);
    CHECK(ranges(16, 4, 0) == more);  // the nearest that is allowed
}

TEST_CASE("both sides of a link may measure it at the same time", "[engine]") {
    auto config = test::two_rails();
    config.set("tcp.interfaces", "127.0.1.1");
    Pair pair(config);
    connect(pair);
    const AssessOptions options{.n = 3, .sizes = 3, .rounds = test::thinned > 1 ? 2U : 4U};
    std::atomic<bool> a_over = false, b_over = false;
    std::vector<LinkAssessment> of_b;
    std::thread other([&] {
        of_b = pair.b.assess(pair.to_a, "all", options);
        b_over = true;
        while (!a_over) pair.b.progress();
    });
    const auto of_a = pair.a.assess(pair.to_b, "all", options);
    a_over = true;
    while (!b_over) pair.a.progress();
    other.join();
    REQUIRE(of_a.size() == 1);
    REQUIRE(of_b.size() == 1);
    CHECK(largest_point(of_a.front()) == largest);
    CHECK(largest_point(of_b.front()) == largest);
}

TEST_CASE("frames with checksums are measured without puts", "[engine]") {
    auto config = test::two_rails();
    config.set("tcp.interfaces", "127.0.1.1").set("link.checksum", "on");
    Pair pair(config);
    connect(pair);
    std::atomic<bool> over = false;
    std::thread other([&] {
        while (!over) pair.b.progress();
    });
    const auto links = pair.a.assess(pair.to_b, "all", {.n = 3, .sizes = 3, .rounds = 2});
    over = true;
    other.join();
    REQUIRE(links.size() == 1);
    CHECK(largest_point(links.front()) < 65536);
}

TEST_CASE("a link whose probe was disturbed is measured again when it is quiet", "[engine]") {
    SimHosts hosts;
    for (const char* host : {"a", "b"}) {
        hosts.fabric.add_rail(
            host, {.device = "eth0", .network = "net", .timing = test::sim::simple_timing(5000, 300, 300, 400, 0.5)});
    }
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    hosts.look_each = 200 * base::microsecond;  // both are seldom there
    hosts.deliver(*a, to_b, *b, to_a, 8);
    const auto latency = [&] {
        const auto link = a->models(to_b).front();
        CHECK(link.source == ModelSource::probed);
        return link.model.predict(1).delivery.count();
    };
    const auto pass = [&](base::Nanoseconds time) {
        const auto end = hosts.fabric.now() + time;
        hosts.until({a.get(), b.get()}, [&] { return hosts.fabric.now() >= end; });
    };
    const auto right = Approx(5000 + 300 + 300).epsilon(0.1);
    pass(base::second / 10);
    CHECK(latency() != right);
    hosts.look_each = base::microsecond;
    pass(base::second * 3 / 2);
    CHECK(latency() != right);  // whoever has nothing to say is not disturbed by it
    for (int i = 0; i < 300; ++i) {
        hosts.deliver(*a, to_b, *b, to_a, 8);
        pass(5 * base::millisecond);
    }
    CHECK(latency() == right);
}

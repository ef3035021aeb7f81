// The simulated rail against LogGP answers worked out by hand.
#include <catch2/catch.hpp>

#include <array>
#include <vector>

#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::transports;

namespace {

constexpr std::size_t room = 64;

/// Two hosts with a rail each, and one link between them that is up.
struct Line {
    explicit Line(const sim::Timing& timing, std::uint64_t seed = 1, bool ordered = true) : fabric(seed) {
        sim::RailOptions options{.timing = timing, .ordered = ordered};
        options.max_frame = 1 << 20;
        options.tx_depth = 1'000;
        a = fabric.open("a", options);
        b = fabric.open("b", options);
        from = a->connect(b->address(), {});
        std::array<Event, room> events;
        while (!up) {
            REQUIRE(fabric.advance_to_next_event());
            for (const auto& event : std::span(events).first(b->poll(events))) {
                if (event.kind == EventKind::connect_request) b->accept(event.link, {});
            }
            for (const auto& event : std::span(events).first(a->poll(events))) up |= event.kind == EventKind::link_up;
        }
        fabric.advance(1'000'000);  // the clock of the test starts on an idle line
        static_cast<void>(b->poll(events));
    }

    void send(std::size_t bytes, std::uint64_t cookie = 0) {
        Segment segment{memory.data(), bytes};
        const Work work{.op = Op::send, .link = from, .segments = {&segment, 1}, .cookie = cookie};
        REQUIRE(a->post({&work, 1}) == 1);
    }

    struct Seen {
        std::vector<base::Nanoseconds> done;
        std::vector<base::Nanoseconds> received;
        std::vector<std::size_t> sizes;
    };
    /// Runs until nothing is under way; times count from `since`.
    Seen run(base::Nanoseconds since) {
        Seen seen;
        std::array<Event, room> events;
        do {
            while (const auto count = a->poll(events)) {
                for (const auto& event : std::span(events).first(count)) {
                    if (event.kind == EventKind::done) seen.done.push_back(fabric.now() - since);
                }
            }
            while (const auto count = b->poll(events)) {
                for (const auto& event : std::span(events).first(count)) {
                    if (event.kind != EventKind::received) continue;
                    seen.received.push_back(fabric.now() - since);
                    seen.sizes.push_back(event.data.size());
                }
            }
        } while (fabric.advance_to_next_event());
        return seen;
    }

    sim::Fabric fabric;
    std::unique_ptr<Rail> a, b;
    LinkId from;
    bool up = false;
    std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
};

using Times = std::vector<base::Nanoseconds>;

}  // namespace

TEST_CASE("one frame takes o_s + L + o_r + (s-1) G", "[sim]") {
    Line line(sim::simple_timing(1000, 100, 50, 200, 0.5));
    const auto start = line.fabric.now();
    line.send(1001);
    const auto seen = line.run(start);
    CHECK(seen.done == Times{200 + 500});  // g + (s-1) G
    CHECK(seen.received == Times{100 + 1000 + 50 + 500});
}

TEST_CASE("an empty frame takes as long as one byte", "[sim]") {
    Line line(sim::simple_timing(1000, 100, 50, 200, 0.5));
    const auto start = line.fabric.now();
    line.send(0);
    CHECK(line.run(start).received == Times{1150});
}

TEST_CASE("frames follow each other by max(o_s, g + (s-1) G)", "[sim]") {
    const auto start_of = [](Line& line, std::size_t bytes) {
        const auto start = line.fabric.now();
        for (int i = 0; i < 3; ++i) line.send(bytes);
        return line.run(start).received;
    };
    Line rail_bound(sim::simple_timing(1000, 100, 50, 200, 0.5));
    CHECK(start_of(rail_bound, 101) == Times{1200, 1450, 1700});
    Line cpu_bound(sim::simple_timing(1000, 300, 50, 200, 0.5));
    CHECK(start_of(cpu_bound, 101) == Times{1400, 1700, 2000});
}

TEST_CASE("fractions of a nanosecond do not drift", "[sim]") {
    Line line(sim::simple_timing(0, 0, 0, 0.25, 0.02));
    const auto start = line.fabric.now();
    for (std::uint64_t i = 0; i < 1000; ++i) line.send(51);  // 0.25 + 50 * 0.02 = 1.25 ns each
    CHECK(line.run(start).done.back() == 1250);
}

TEST_CASE("each size has the parameters of its range", "[sim]") {
    sim::Timing timing;
    timing.ranges = {{.up_to_bytes = 100, .L = 1000, .g = 10, .G = 1}, {.L = 5000, .g = 10, .G = 2}};
    Line line(timing);
    auto start = line.fabric.now();
    line.send(100);
    CHECK(line.run(start).received == Times{1099});
    start = line.fabric.now();
    line.send(101);
    CHECK(line.run(start).received == Times{5200});
}

TEST_CASE("a token bucket passes its burst at line rate, then the rate", "[sim]") {
    auto timing = sim::simple_timing(0, 0, 0, 0, 8);  // 1 Gb/s over a 10 Gb/s line
    timing.burst_bytes = 10'000;
    timing.burst_G = 0.8;
    Line line(timing);
    const auto start = line.fabric.now();
    line.send(20'001);
    // The bucket lasts for 10000 / (1 - 0.1) = 11111.1 bytes; those at 0.8 ns, the other 8888.9 at 8 ns.
    CHECK(line.run(start).received == Times{80'000});  // 8888.9 + 71111.1
    const auto again = line.fabric.now();
    line.send(1'001);  // empty bucket
    CHECK(line.run(again).received == Times{8'000});
    line.fabric.advance(16'000);  // fills by 2000 bytes
    const auto later = line.fabric.now();
    line.send(1'001);
    CHECK(line.run(later).received == Times{800});
}

TEST_CASE("a new rate holds from the next frame that starts", "[sim]") {
    Line line(sim::simple_timing(0, 0, 0, 1000, 0));
    const auto start = line.fabric.now();
    for (int i = 0; i < 3; ++i) line.send(1);
    line.fabric.advance(500);
    line.fabric.set_timing("a/eth0", sim::simple_timing(0, 0, 0, 10, 0));
    CHECK(line.run(start).done == Times{1000, 1010, 1020});
}

TEST_CASE("each direction and peer may have a timing of its own", "[sim]") {
    Line line(sim::simple_timing(1000, 0, 0, 0, 0));
    line.fabric.set_timing("a/eth0", "b/eth0", sim::simple_timing(70, 0, 0, 0, 0));
    const auto start = line.fabric.now();
    line.send(1);
    CHECK(line.run(start).received == Times{70});
}

TEST_CASE("noise only delays, comes from the seed, and reorders unordered links alone", "[sim]") {
    auto timing = sim::simple_timing(1000, 0, 0, 10, 0);
    timing.noise_mean_ns = 500;
    const auto sizes = [&](std::uint64_t seed, bool ordered, base::Nanoseconds& last) {
        Line line(timing, seed, ordered);
        const auto start = line.fabric.now();
        for (std::size_t i = 1; i <= 200; ++i) line.send(i);
        auto seen = line.run(start);
        CHECK(seen.received.front() >= 1000);
        last = seen.received.back();
        return seen.sizes;
    };
    base::Nanoseconds one = 0, two = 0, three = 0;
    const auto ordered = sizes(7, true, one);
    CHECK(std::is_sorted(ordered.begin(), ordered.end()));
    const auto unordered = sizes(7, false, two);
    CHECK_FALSE(std::is_sorted(unordered.begin(), unordered.end()));
    CHECK(sizes(7, false, three) == unordered);
    CHECK(two == three);
    CHECK(sizes(8, false, three) != unordered);
}

TEST_CASE("a receiver that looks late pays o_r then", "[sim]") {
    Line line(sim::simple_timing(1000, 0, 300, 10, 0));
    line.send(1);
    line.fabric.advance(10'000);
    std::array<Event, room> events;
    REQUIRE(line.b->poll(events) == 1);
    CHECK(line.fabric.cpu_free("b") == line.fabric.now() + 300);
}

TEST_CASE("bytes are read when the frame leaves", "[sim]") {
    Line line(sim::simple_timing(1000, 0, 0, 100, 0));
    line.memory[0] = std::byte{1};
    line.send(1);
    line.memory[0] = std::byte{2};  // against the rules: not done yet
    std::array<Event, room> events;
    line.fabric.advance(100);
    REQUIRE(line.a->poll(events) == 1);
    line.memory[0] = std::byte{3};
    line.fabric.advance(1'000);
    REQUIRE(line.b->poll(events) == 1);
    CHECK(events[0].data[0] == std::byte{2});
}

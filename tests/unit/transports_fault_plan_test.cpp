// Fault plans as text, and what each fault does at the seam.
#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <string>
#include <vector>

#include "transports/faulty_rail.hpp"
#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::transports;
using Plan = FaultyRail::Plan;

TEST_CASE("a plan's text gives the plan back", "[faults]") {
    const std::string text =
        "seed=7,refuse=10%,refuse@4,delay_work@3:5,delay=5%:3,duplicate=1%,stall@9:100,stall@12,kill_work@12,kill_link@"
        "37,corrupt@5";
    CHECK(Plan::parse(text).text() == text);
    CHECK(Plan::parse("").empty());
    CHECK(Plan::parse("seed=9").seed == 9);
    CHECK(Plan::parse("seed=9").empty());
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        const auto plan = Plan::random(seed);
        CHECK(Plan::parse(plan.text()) == plan);
    }
}

TEST_CASE("a malformed plan is an error that names the rule", "[faults]") {
    for (const auto* bad :
         {"kill_link", "kill_link@", "kill_link@0", "kill_link@x", "kill@3", "refuse=10", "refuse=101%", "refuse=%",
          "delay@3:", "delay@3:x", "seed=", "refuse@1,,refuse@2", "refuse@-1"}) {
        INFO(bad);
        CHECK_THROWS_AS(Plan::parse(bad), Error);
    }
    CHECK_THROWS_WITH(Plan::parse("refuse@1,kill@3"), Catch::Contains("\"kill@3\""));
}

namespace {

/// A link without delays from a rail behind `plan` to a plain one; and one behind a plan back.
struct Pair {
    Pair(const std::string& near_plan, const std::string& far_plan) {
        sim::RailOptions options{.timing = sim::simple_timing(0, 0, 0, 0, 0)};
        near = std::make_unique<FaultyRail>(fabric.open("a", options), Plan::parse(near_plan));
        far = std::make_unique<FaultyRail>(fabric.open("b", options), Plan::parse(far_plan));
        from = near->connect(far->address(), {});
        for (int i = 0; i < 50; ++i) {
            for (const auto& event : poll(*far)) {
                if (event.kind == EventKind::connect_request) far->accept(event.link, {});
            }
            for (const auto& event : poll(*near)) up |= event.kind == EventKind::link_up;
        }
    }
    [[nodiscard]] std::vector<Event> poll(Rail& rail) {
        std::array<Event, 32> events;
        const auto count = rail.poll(events);
        return {events.begin(), events.begin() + static_cast<std::ptrdiff_t>(count)};
    }
    std::size_t send(std::size_t count) {
        const Segment segment{bytes.data(), bytes.size()};
        std::vector<Work> works;
        for (std::size_t i = 0; i < count; ++i) {
            works.push_back({.link = from, .segments = {&segment, 1}, .cookie = ++cookie});
        }
        return near->post(works);
    }
    /// How many events of a kind each of the next polls hands out.
    [[nodiscard]] std::vector<int> counts(Rail& rail, EventKind kind, int polls) {
        std::vector<int> all;
        for (int i = 0; i < polls; ++i) {
            all.push_back(0);
            for (const auto& event : poll(rail)) all.back() += event.kind == kind ? 1 : 0;
        }
        return all;
    }

    sim::Fabric fabric;
    std::unique_ptr<FaultyRail> near, far;
    LinkId from;
    bool up = false;
    std::array<std::byte, 10> bytes{};
    std::uint64_t cookie = 0;
};

using Counts = std::vector<int>;

}  // namespace

TEST_CASE("refuse ends the prefix once", "[faults]") {
    Pair pair("refuse@3", "");
    REQUIRE(pair.up);
    CHECK(pair.send(5) == 2);
    CHECK(pair.send(3) == 3);
}

TEST_CASE("delay holds an event and what follows it for so many polls", "[faults]") {
    Pair pair("", "delay@4:3");  // request and link_up are its first two
    CHECK(pair.send(4) == 4);
    CHECK(pair.counts(*pair.far, EventKind::received, 6) == Counts{1, 0, 0, 3, 0, 0});
}

TEST_CASE("delay_work holds a work and what follows it for so many polls", "[faults]") {
    Pair pair("delay_work@2:2", "");
    CHECK(pair.send(3) == 3);
    CHECK(pair.counts(*pair.near, EventKind::done, 1) == Counts{1});
    CHECK(pair.counts(*pair.far, EventKind::received, 2) == Counts{1, 0});
    CHECK(pair.counts(*pair.near, EventKind::done, 1) == Counts{2});
    CHECK(pair.counts(*pair.far, EventKind::received, 2) == Counts{2, 0});
}

TEST_CASE("duplicate gives the frame again with the next poll", "[faults]") {
    Pair pair("", "duplicate@2");
    CHECK(pair.send(2) == 2);
    CHECK(pair.counts(*pair.far, EventKind::received, 3) == Counts{2, 1, 0});
}

TEST_CASE("corrupt changes one bit of what arrives, and nothing of the caller's", "[faults]") {
    Pair pair("corrupt@2", "");
    CHECK(pair.send(3) == 3);
    Counts wrong_bits;
    for (int i = 0; i < 3; ++i) {
        for (const auto& event : pair.poll(*pair.far)) {
            if (event.kind != EventKind::received) continue;
            int bits = 0;
            for (const auto byte : event.data) bits += std::popcount(static_cast<unsigned>(byte));
            wrong_bits.push_back(bits);
        }
    }
    CHECK(wrong_bits == Counts{0, 1, 0});
    CHECK(pair.near->corruptions() == 1);
    CHECK(pair.bytes == decltype(pair.bytes){});
    CHECK(pair.counts(*pair.near, EventKind::done, 1) == Counts{3});
}

TEST_CASE("a stalled link takes works up to its depth and is silent until disconnected", "[faults]") {
    Pair pair("stall@4", "");  // link_up, then the third work
    const auto depth = pair.near->traits().tx_depth;
    CHECK(pair.send(depth + 10) == depth);
    CHECK(pair.counts(*pair.near, EventKind::done, 5) == Counts{0, 0, 0, 0, 0});
    CHECK(pair.counts(*pair.far, EventKind::received, 5)[0] == 3);
    pair.near->disconnect(pair.from);
    int done = 0, lost = 0, down = 0;
    for (int i = 0; i < 10; ++i) {
        for (const auto& event : pair.poll(*pair.near)) {
            if (event.kind == EventKind::link_down) ++down;
            if (event.kind != EventKind::done) continue;
            CHECK(down == 0);
            ++(event.status == WorkStatus::ok ? done : lost);
        }
    }
    CHECK(done == 3);
    CHECK(lost == static_cast<int>(depth) - 3);
    CHECK(down == 1);
}

TEST_CASE("a killed work is lost and takes its link with it", "[faults]") {
    Pair pair("kill_work@2", "");
    CHECK(pair.send(3) == 3);
    std::string order;
    for (int i = 0; i < 4; ++i) {
        for (const auto& event : pair.poll(*pair.near)) {
            order += event.kind == EventKind::link_down ? "d" : event.status == WorkStatus::link_lost ? "l" : "o";
        }
    }
    CHECK(std::count(order.begin(), order.end(), 'd') == 1);
    CHECK(order.back() == 'd');
    CHECK(order.size() == 4);
    CHECK(pair.counts(*pair.far, EventKind::link_down, 3) == Counts{1, 0, 0});
}

// Checksums: what rails corrupt is sent again, and nobody sees anything of it but a slower link, a warning and a counter.
#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "engine/sim_pair.hpp"
#include "repeats.hpp"

using namespace railmux;
using messaging::AtomicOp;
using messaging::Engine;
using test::FaultyTransport;
using test::pattern;
using test::SimPair;
using transports::FaultPlan;

namespace checksum_test {
namespace {

// Empty, tiny, the largest eager, rendezvous in one piece (or unasked, if alone), and in many over both rails.
constexpr std::array<std::size_t, 5> sizes{0, 8, 16384, 60'000, 700'000};
constexpr std::size_t room = 800'000;
constexpr std::size_t adds = 10;

Config checked() {
    Config config;
    config.set("link.checksum", "on").set("recover.first", "1ms").set("recover.longest", "1ms");
    return config;
}

/// All that one side does with the other: messages (the larger ones gathered and scattered), puts, gets and atomics.
struct Work {
    Engine& near;
    Engine& far;
    Peer to_far;
    Peer to_near;
    std::vector<std::byte> data = pattern(room, 3);
    std::vector<std::vector<std::byte>> got{};
    std::vector<std::byte> written = std::vector<std::byte>(room);
    std::vector<std::byte> read = std::vector<std::byte>(room);
    std::uint64_t counter = 0;
    std::array<std::uint64_t, adds> before{};
    std::vector<MemoryRegion> regions{};
    std::vector<std::pair<Engine*, Request>> requests{};

    void start() {
        regions.push_back(far.register_memory(written, Rights::read_write));
        regions.push_back(far.register_memory(data, Rights::read_write));
        regions.push_back(far.register_memory(std::as_writable_bytes(std::span(&counter, 1)), Rights::read_write));
        const ConstBuffer all(data);
        std::size_t at = 0;
        for (const auto bytes : sizes) {
            auto& into = got.emplace_back(bytes);
            const auto cut = bytes / 3;
            const std::array<ConstBuffer, 2> out{all.first(cut), all.subspan(cut, bytes - cut)};
            const MutableBuffer in(into);
            const std::array<MutableBuffer, 2> scattered{in.first(bytes / 2), in.subspan(bytes / 2)};
            requests.emplace_back(&near, near.isend(to_far, 1, out, nullptr));
            requests.emplace_back(&far, far.irecv(to_near, 1, scattered, nullptr));
            const auto part = all.subspan(at, bytes);
            const MutableBuffer back = MutableBuffer(read).subspan(at, bytes);
            requests.emplace_back(&near, near.iput(to_far, {regions[0].key(), at}, {&part, 1}, {}, nullptr));
            requests.emplace_back(&near, near.iget(to_far, {regions[1].key(), at}, {&back, 1}, nullptr));
            at += bytes;
        }
        for (auto& old : before) {
            const messaging::AtomicCall call{AtomicOp::fetch_add, 8, 1, 0, &old};
            requests.emplace_back(&near, near.atomic(to_far, {regions[2].key(), 0}, call, nullptr));
        }
        requests.emplace_back(&near, near.iflush(to_far, nullptr));
    }
    bool over() {
        bool all = true;
        for (auto& [engine, request] : requests) {
            if (!request.active()) continue;
            const auto status = engine->test(request);
            if (status && !status->ok()) FAIL("one failed as " << to_string(status->code));
            all = all && status;
        }
        return all;
    }
    void check() const {
        std::size_t at = 0;
        for (std::size_t i = 0; i < sizes.size(); at += sizes[i++]) {
            INFO(sizes[i] << " bytes");
            CHECK((std::equal(got[i].begin(), got[i].end(), data.begin())));
            const auto from = static_cast<std::ptrdiff_t>(at);
            const auto to = static_cast<std::ptrdiff_t>(at + sizes[i]);
            CHECK((std::equal(data.begin() + from, data.begin() + to, written.begin() + from)));
            CHECK((std::equal(data.begin() + from, data.begin() + to, read.begin() + from)));
        }
        CHECK(counter == adds);
        std::array<std::uint64_t, adds> expected{};
        std::iota(expected.begin(), expected.end(), std::uint64_t{0});
        CHECK(before == expected);
    }
};

/// Both sides do all of that at once.
template <typename Until>
void work_both_ways(Engine& a, Peer to_b, Engine& b, Peer to_a, Until until) {
    std::array works{Work{a, b, to_b, to_a}, Work{b, a, to_a, to_b}};
    for (auto& work : works) work.start();
    until([&] {
        const bool first = works[0].over();
        return works[1].over() && first;
    });
    // A region that goes while something of it is still on its way back gives the other side up, after close.timeout.
    until([&] {
        const bool first = a.flush(std::chrono::nanoseconds(0));
        return b.flush(std::chrono::nanoseconds(0)) && first;
    });
    for (const auto& work : works) work.check();
}

std::uint64_t found(Engine& engine) {
    std::uint64_t frames = 0;
    for (const auto& rail : engine.traffic()) frames += rail.corrupted_frames;
    return frames;
}

std::uint64_t lost(Engine& engine) {
    std::uint64_t links = 0;
    for (const auto& rail : engine.traffic()) links += rail.links_lost;
    return links;
}

std::uint64_t made(const FaultyTransport& transport) {
    std::uint64_t works = 0;
    for (const auto& [name, rail] : transport.rails) works += rail->corruptions();
    return works;
}

FaultyTransport::Plans everywhere(const std::string& faults, std::uint64_t seed) {
    FaultyTransport::Plans plans;
    for (const char* rail : {"a/eth0", "a/eth1", "b/eth0", "b/eth1"}) {
        plans[rail] = FaultPlan::parse("seed=" + std::to_string(seed * 4 + plans.size()) + faults);
    }
    return plans;
}

/// One message after the other, until one of them arrives wrong, or not within a second.
bool arrives_wrong(SimPair& pair, const std::vector<std::byte>& data, std::vector<std::byte>& got) {
    const ConstBuffer out(data);
    const MutableBuffer in(got);
    for (int i = 0; i < 20; ++i) {
        std::ranges::fill(got, std::byte{});
        auto receive = pair.b->irecv(pair.to_a, 1, {&in, 1}, nullptr);
        auto send = pair.a->isend(pair.to_b, 1, {&out, 1}, nullptr);
        const auto end = pair.hosts.fabric.now() + base::second;
        pair.until([&] {
            if (send.active()) static_cast<void>(pair.a->test(send));
            if (receive.active()) static_cast<void>(pair.b->test(receive));
            return (!send.active() && !receive.active()) || pair.hosts.fabric.now() > end;
        });
        if (got != data || send.active()) return true;
    }
    return false;
}

}  // namespace

TEST_CASE("failover: corrupted works, without checksums, arrive as they are", "[engine][checksum]") {
    // So that the other tests prove something. Works of bytes, most of which are a payload.
    const std::size_t bytes = GENERATE(16'000, 60'000);
    const bool checks = GENERATE(false, true);
    const auto data = pattern(bytes);
    std::vector<std::byte> got(bytes);
    int wrong = 0;
    for (int n = 4; n < 24; ++n) {
        INFO(bytes << " bytes, work " << n);
        const auto plan = FaultPlan::parse("seed=" + std::to_string(n) + ",corrupt@" + std::to_string(n));
        SimPair pair("fixed", {{"a/eth0", plan}}, 1, 1, checks ? checked() : Config{});
        wrong += arrives_wrong(pair, data, got) ? 1 : 0;
    }
    if (checks) {
        CHECK(wrong == 0);
    } else {
        CHECK(wrong > 0);
    }
}

TEST_CASE("failover: each work corrupted in turn, and found", "[engine][checksum]") {
    const auto* policy = GENERATE("round_robin", "vft");
    const auto run = [&](const std::string& plan, const auto& then) {
        INFO(policy << " " << plan);
        SimPair pair(policy, {{"a/eth0", FaultPlan::parse(plan)}}, 1, 2, checked());
        work_both_ways(*pair.a, pair.to_b, *pair.b, pair.to_a, [&](auto holds) { pair.until(holds); });
        then(pair);
    };
    std::uint64_t works = 0;
    run("refuse=0%", [&](SimPair& pair) {
        works = pair.rails_a->rails.at("eth0")->works();
        CHECK(found(*pair.a) + found(*pair.b) == 0);
    });
    REQUIRE(works > 20);
    std::uint64_t all_made = 0;
    std::uint64_t all_found = 0;
    for (std::uint64_t n = 1; n <= works; n += test::each(1)) {
        run("seed=" + std::to_string(n) + ",corrupt@" + std::to_string(n), [&](SimPair& pair) {
            const auto end = pair.hosts.fabric.now() + 5 * base::millisecond;
            pair.until([&] { return pair.hosts.fabric.now() > end; });
            CHECK(found(*pair.a) == 0);
            CHECK(found(*pair.b) <= made(*pair.rails_a));
            all_made += made(*pair.rails_a);
            all_found += found(*pair.b);
        });
    }
    // Not counted are proofs of links, because nobody is known by then, and what was still on its way in the end.
    CHECK(all_found * 10 >= all_made * 9);
}

TEST_CASE("failover: rails that go on corrupting, on every side", "[engine][checksum]") {
    const std::string faults =
        GENERATE(",corrupt=5%", ",corrupt=20%", ",corrupt=8%,kill_link=1%,duplicate=10%,delay=10%:5",
                 ",corrupt=5%,refuse=20%,delay_work=10%:5,kill_work=1%");
    std::uint64_t all = 0;
    for (std::uint64_t seed = 1; seed <= 15; seed += test::each(1)) {
        INFO(faults << " seed " << seed);
        const bool a_asks = seed % 2 == 0;  // one side that wants checksums is enough
        auto hasty = checked();
        hasty.set("link.checksum", "off");
        SimPair pair(seed % 3 == 0 ? "vft" : "round_robin", everywhere(faults, seed), seed, 2,
                     a_asks ? checked() : hasty, a_asks ? hasty : checked());
        work_both_ways(*pair.a, pair.to_b, *pair.b, pair.to_a, [&](auto holds) { pair.until(holds); });
        all += found(*pair.a) + found(*pair.b);
    }
    CHECK(all > 15);
}

TEST_CASE("failover: a rail that corrupts everything is tried ever less often", "[engine][checksum]") {
    auto config = checked();
    config.set("recover.first", "50ms").set("recover.longest", "500ms");
    const bool others = GENERATE(false, true);  // another rail that works
    SimPair pair("vft", {{"b/eth0", FaultPlan::parse("corrupt=100%")}}, 1, others ? 2 : 1, config);
    const auto data = pattern(100);
    const ConstBuffer out(data);
    auto send = pair.a->isend(pair.to_b, 1, {&out, 1}, nullptr);
    std::vector<std::byte> got(data.size());
    const MutableBuffer in(got);
    auto receive = pair.b->irecv(pair.to_a, 1, {&in, 1}, nullptr);
    const auto end = pair.hosts.fabric.now() + 10 * base::second;
    pair.until([&] {
        if (send.active()) static_cast<void>(pair.a->test(send));
        if (receive.active()) static_cast<void>(pair.b->test(receive));
        // Something to say each time that there is a link.
        auto more = pair.b->isend(pair.to_a, 2, {&out, 1}, nullptr);
        return pair.hosts.fabric.now() > end;
    });
    CHECK(test::same(got, data));
    const auto tries = lost(*pair.a) + lost(*pair.b);
    CHECK(tries >= 3);
    CHECK(tries <= (others ? 40 : 1000));  // where nothing else works it is tried more often, but not all the time
}

namespace {

/// Two engines over two tcp rails of the loopback interface, under the real clock, with faults.
struct TcpPair {
    explicit TcpPair(const FaultyTransport::Plans& plans) : plans_(plans) {
        config.set("tcp.interfaces", "127.0.1.1,127.0.1.2").set("rails", "tcp:*").set("policy", "round_robin");
        config.set("progress", "poll").set("close.timeout", "0s").set("log", "off").set("probe", "off");
        a = start("a", faults_of_a);
        b = start("b", faults_of_b);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
    }
    std::unique_ptr<Engine> start(const char* host, FaultyTransport*& faults) {
        Engine::Parts parts;
        for (auto& transport : transports::builtin_transports({config, log})) {
            if (transport->name() != "tcp") continue;
            auto faulty = std::make_unique<FaultyTransport>(std::move(transport), host, plans_);
            faults = faulty.get();
            parts.transports.push_back(std::move(faulty));
        }
        return std::make_unique<Engine>(config, std::move(parts));
    }
    template <typename Holds>
    void until(Holds holds) {
        const auto end = base::now_ns() + 60 * base::second;
        while (!holds()) {
            a->progress();
            b->progress();
            if (base::now_ns() > end) FAIL("not within a minute");
        }
    }

    FaultyTransport::Plans plans_;
    Config config = checked();
    base::Logger log{base::LogLevel::off};
    FaultyTransport* faults_of_a = nullptr;  // owned by the engines
    FaultyTransport* faults_of_b = nullptr;
    std::unique_ptr<Engine> a;
    std::unique_ptr<Engine> b;
    Peer to_b;
    Peer to_a;
};

}  // namespace

TEST_CASE("failover: tcp rails that corrupt now and then", "[engine][checksum]") {
    FaultyTransport::Plans plans;
    for (const char* rail : {"a/127.0.1.1", "a/127.0.1.2", "b/127.0.1.1", "b/127.0.1.2"}) {
        plans[rail] = FaultPlan::parse("seed=" + std::to_string(plans.size()) + ",corrupt=10%");
    }
    TcpPair pair(plans);
    for (int round = 0; round < 5; ++round) {
        work_both_ways(*pair.a, pair.to_b, *pair.b, pair.to_a, [&](auto holds) { pair.until(holds); });
    }
    CHECK(found(*pair.a) > 0);
    CHECK(found(*pair.b) > 0);
    CHECK(made(*pair.faults_of_a) > 0);
}

}  // namespace checksum_test

// Two processes that send each other messages, over rails of which the slow one lets bursts through at once.
#include <deque>
#include <optional>

#include "engine/sim_pair.hpp"

using namespace railmux;
using test::pattern;
using test::SimHosts;

namespace {

/// 1 Gbit/s beside 100 Mbit/s, or without; both shaped by token buckets.
struct Uneven {
    explicit Uneven(bool both, double second = 80) {
        const auto add = [&](const char* device, double per_byte) {
            auto timing = test::sim::simple_timing(4000, 300, 300, 400, per_byte);
            timing.burst_bytes = 256 << 10;
            timing.burst_G = 0.3;
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(host, {.device = device, .network = device, .timing = timing});
            }
        };
        add("eth0", 8);
        if (both) add("eth1", second);
        a = hosts.start("a", "vft");
        b = hosts.start("b", "vft");
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
    }

    /// Each has so many messages under way to the other, `count` in all; returns what that took.
    base::Nanoseconds exchange(std::size_t bytes, std::size_t window, std::size_t count) {
        const auto data = pattern(bytes);
        struct Side {
            messaging::Engine& engine;
            Peer to;
            std::vector<std::vector<std::byte>> got;
            std::deque<Request> requests;
            std::size_t begun = 0;
        };
        std::array sides{Side{*a, to_b, {}, {}}, Side{*b, to_a, {}, {}}};
        for (auto& side : sides) side.got.resize(window, std::vector<std::byte>(bytes));
        const auto begin = hosts.fabric.now();
        hosts.until({a.get(), b.get()}, [&] {
            bool over = true;
            for (auto& side : sides) {
                while (!side.requests.empty() && side.engine.test(side.requests.front())) side.requests.pop_front();
                if (side.requests.empty() && side.begun < count) {
                    for (std::size_t i = 0; i < window; ++i) {
                        const MutableBuffer in(side.got[i]);
                        side.requests.push_back(side.engine.irecv(side.to, 1, {&in, 1}, nullptr));
                    }
                    for (std::size_t i = 0; i < window; ++i) {
                        const ConstBuffer out(data);
                        side.requests.push_back(side.engine.isend(side.to, 1, {&out, 1}, nullptr));
                    }
                    side.begun += window;
                }
                over = over && side.requests.empty();
            }
            return over;
        });
        return hosts.fabric.now() - begin;
    }

    SimHosts hosts;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;
};

base::Nanoseconds taken(bool both, bool settled, std::size_t bytes, std::size_t window, std::size_t count) {
    Uneven pair(both);
    // Until probes are over, and latencies known that they met each other's bursts in.
    for (int i = 0; settled && i < 200; ++i) {
        pair.hosts.deliver(*pair.a, pair.to_b, *pair.b, pair.to_a, 64);
        pair.hosts.deliver(*pair.b, pair.to_a, *pair.a, pair.to_b, 64);
    }
    static_cast<void>(pair.exchange(bytes, window, 2 * window));
    return pair.exchange(bytes, window, count);
}

}  // namespace

TEST_CASE("both ways: a slow rail beside the fast one does no harm", "[engine]") {
    struct Flow {
        std::size_t bytes;
        std::size_t window;
        double of_alone;  // of a window of bulk the slow rail carries its eleventh part
    };
    const auto flow = GENERATE(Flow{512, 1, 1.05}, Flow{512, 8, 1.05}, Flow{4096, 8, 1.05}, Flow{256 << 10, 64, 0.94});
    const bool settled = GENERATE(true, false);
    const auto count = (std::size_t{40} << 20) / flow.bytes;
    const auto alone = taken(false, settled, flow.bytes, flow.window, count);
    const auto both = taken(true, settled, flow.bytes, flow.window, count);
    CAPTURE(flow.bytes, flow.window, settled, alone, both);
    CHECK(static_cast<double>(both) < flow.of_alone * static_cast<double>(alone));
}

TEST_CASE("large messages to and fro take no longer over two rails than over the fast one", "[engine]") {
    const std::size_t bytes = GENERATE(256, 512) * std::size_t{1024};
    const auto taken = [&](bool both) {
        Uneven pair(both);
        const auto exchange = [&](int times) {
            const auto begin = pair.hosts.fabric.now();
            for (int i = 0; i < times; ++i) {
                pair.hosts.deliver(*pair.a, pair.to_b, *pair.b, pair.to_a, bytes);
                pair.hosts.deliver(*pair.b, pair.to_a, *pair.a, pair.to_b, bytes);
            }
            return static_cast<double>(pair.hosts.fabric.now() - begin) / times;
        };
        static_cast<void>(exchange(300));  // until that is known
        return exchange(1600);
    };
    const auto alone = taken(false);
    const auto both = taken(true);
    CAPTURE(bytes, alone, both);
    // Which of the two leads is chance. The slow rail is thought better of as time goes by, and then given some again.
    CHECK(both < (bytes > 256 * 1024 ? 1.10 : 1.03) * alone);
}

TEST_CASE("bursts to and fro use what a rail saves up meanwhile", "[engine]") {
    // Beside a rail of a tenth a fifteenth is gained, as each side tells the other what it has learnt of the rates.
    struct Bursts {
        double second;
        std::size_t burst;
        double of_alone;
    };
    const auto bursts = GENERATE(Bursts{8, 1, 0.6}, Bursts{8, 8, 0.6}, Bursts{80, 8, 0.97});
    const auto taken = [&](bool both) {
        Uneven pair(both, bursts.second);
        const auto data = pattern(4096);
        std::vector<std::vector<std::byte>> got(bursts.burst, std::vector<std::byte>(data.size()));
        const auto send = [&](messaging::Engine& from, Peer receiver, messaging::Engine& to, Peer sender) {
            std::vector<Request> requests;
            for (auto& each : got) {
                const MutableBuffer in(each);
                requests.push_back(to.irecv(sender, 1, {&in, 1}, nullptr));
            }
            for (std::size_t i = 0; i < bursts.burst; ++i) {
                const ConstBuffer out(data);
                requests.push_back(from.isend(receiver, 1, {&out, 1}, nullptr));
            }
            pair.hosts.until({&from, &to}, [&] {
                bool over = true;
                for (std::size_t i = 0; i < requests.size(); ++i) {
                    if (requests[i].active()) static_cast<void>((i < bursts.burst ? to : from).test(requests[i]));
                    over = over && !requests[i].active();
                }
                return over;
            });
        };
        const auto exchange = [&](base::Nanoseconds time) {
            const auto begin = pair.hosts.fabric.now();
            std::uint32_t count = 0;
            for (; pair.hosts.fabric.now() < begin + time; ++count) {
                send(*pair.a, pair.to_b, *pair.b, pair.to_a);
                send(*pair.b, pair.to_a, *pair.a, pair.to_b);
            }
            return static_cast<double>(pair.hosts.fabric.now() - begin) / count;
        };
        static_cast<void>(exchange(600 * base::millisecond));  // until that is known
        const auto each = exchange(400 * base::millisecond);
        const auto told = [&] {
            return pair.a->report().find("go over all rails in turn, by their rates") < std::string::npos;
        };
        for (int i = 0; i < 100 && both && bursts.second > 8 && !told(); ++i) {  // not while another way is tried
            static_cast<void>(exchange(base::millisecond));
        }
        CHECK((told() || !both || bursts.second == 8));
        return each;
    };
    const auto alone = taken(false);
    const auto both = taken(true);
    CAPTURE(bursts.second, bursts.burst, alone, both);
    CHECK(both < bursts.of_alone * alone);
}

TEST_CASE("a large message that is left whole does not stay on a rail that slows down", "[engine]") {
    constexpr std::size_t bytes = 512 * 1024;
    std::optional<Uneven> pair;
    const auto whole = [&] { return pair->a->explain(pair->to_b, bytes).reason.starts_with("alone,"); };
    // Divided they take about as long. Where that is found to be so exactly, another pair is tried.
    for (int i = 0; i == 0 || (i < 8000 && !whole()); ++i) {
        if (i % 1000 == 0) pair.emplace(true);
        pair->hosts.deliver(*pair->a, pair->to_b, *pair->b, pair->to_a, bytes);
        pair->hosts.deliver(*pair->b, pair->to_a, *pair->a, pair->to_b, bytes);
    }
    REQUIRE(whole());
    // As fast as the other one from now on: 42 ms alone, half as long by both.
    pair->hosts.fabric.set_timing("a/eth0", test::sim::simple_timing(4000, 300, 300, 400, 80));
    const auto begin = pair->hosts.fabric.now();
    pair->hosts.deliver(*pair->a, pair->to_b, *pair->b, pair->to_a, bytes);
    CHECK(pair->hosts.fabric.now() - begin < 35 * base::millisecond);
}

TEST_CASE("acknowledgements keep to the fast rail while a large message is on it", "[engine]") {
    // What a probe of the slow rail meets, and finds, differs by the size: 0 to 8.4 us for a gap of 0.4.
    const std::size_t bytes = GENERATE(32, 33, 34, 35) * std::size_t{1024};
    // Those that are not asked for go in frames, each with a choice of its own, which needs rates that are known better.
    const bool asked = GENERATE(true, false);
    CAPTURE(bytes, asked);
    SimHosts hosts;
    if (asked) hosts.settings.emplace_back("bulk.inlined", "never");
    for (const char* host : {"a", "b"}) {
        hosts.fabric.add_rail(
            host, {.device = "eth0", .network = "near", .timing = test::sim::simple_timing(200, 50, 50, 50, 0.25)});
        hosts.fabric.add_rail(
            host, {.device = "eth1", .network = "far", .timing = test::sim::simple_timing(5000, 300, 300, 400, 1.0)});
    }
    const auto a = hosts.start("a", "vft");
    const auto b = hosts.start("b", "vft");
    const auto to_b = a->add_peer(b->address());
    const auto to_a = b->add_peer(a->address());
    const auto over_slow = [&] {
        std::uint64_t frames = 0;
        for (auto* engine : {a.get(), b.get()}) {
            for (const auto& rail : engine->traffic()) frames += rail.rail == "sim:eth1" ? rail.sent_frames : 0;
        }
        return frames;
    };
    const auto to_and_fro = [&](int times) {
        const auto before = over_slow();
        for (int i = 0; i < times; ++i) {
            hosts.deliver(*a, to_b, *b, to_a, bytes);
            hosts.deliver(*b, to_a, *a, to_b, bytes);
        }
        return over_slow() - before;
    };
    static_cast<void>(to_and_fro(asked ? 100 : 3000));  // rates are learnt, and how frames fare best
    CHECK(to_and_fro(200) < 40);
}

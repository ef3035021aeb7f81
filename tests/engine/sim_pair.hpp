// Engines on a simulated fabric under its virtual clock, each rail wrapped in a FaultyRail with a plan of its own.
//
// Threads: one; nothing here depends on the machine's time.
// Lifetime: one SimHosts at a time (an engine's clock is a plain function); it outlives its engines.
#pragma once

#include <catch2/catch.hpp>

#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/pair.hpp"
#include "messaging/engine.hpp"
#include "repeats.hpp"
#include "transports/faulty_rail.hpp"
#include "transports/sim/fabric.hpp"

namespace railmux::test {

namespace sim = transports::sim;

/// A transport whose rails have faults: the plan of device "eth0" of host "a" is plans["a/eth0"].
class FaultyTransport final : public transports::Transport {
public:
    using Plans = std::map<std::string, transports::FaultPlan, std::less<>>;

    FaultyTransport(std::unique_ptr<Transport> inner, std::string host, const Plans& plans)
        : inner_(std::move(inner)), host_(std::move(host)), plans_(plans) {}
    [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
    [[nodiscard]] std::vector<RailInfo> scan() override { return inner_->scan(); }
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override {
        const auto plan = plans_.find(host_ + "/" + device.device);
        auto rail = std::make_unique<transports::FaultyRail>(
            inner_->open(device), plan == plans_.end() ? transports::FaultPlan{} : plan->second);
        rails[device.device] = rail.get();
        if (around) return around(std::move(rail));
        return rail;
    }

    std::map<std::string, transports::FaultyRail*> rails;  // owned by the engine
    std::function<std::unique_ptr<transports::Rail>(std::unique_ptr<transports::Rail>)> around;

private:
    std::unique_ptr<Transport> inner_;
    std::string host_;
    const Plans& plans_;
};

/// On both rails of both hosts.
inline FaultyTransport::Plans faults_of_all_kinds(std::uint64_t seed) {
    FaultyTransport::Plans plans;
    for (const char* rail : {"a/eth0", "a/eth1", "b/eth0", "b/eth1"}) {
        plans[rail] = transports::FaultPlan::parse("seed=" + std::to_string(seed * 4 + plans.size()) +
                                                   ",refuse=5%,delay=10%,kill_link=1%");
    }
    return plans;
}

/// A fabric whose virtual clock is that of the engines on it.
class SimHosts {
public:
    explicit SimHosts(std::uint64_t seed = 1, FaultyTransport::Plans plans = {})
        : fabric(seed), plans_(std::move(plans)) {
        current() = this;
    }
    ~SimHosts() { current() = nullptr; }
    SimHosts(const SimHosts&) = delete;
    SimHosts& operator=(const SimHosts&) = delete;

    /// An engine over the rails that the fabric has for `host` by now; `rails` receives its transport.
    std::unique_ptr<messaging::Engine> start(const std::string& host, std::string_view policy,
                                             FaultyTransport** rails = nullptr, Config config = {}) {
        // Nobody progresses the other side while one is destroyed: no waiting for goodbyes.
        config.set("policy", policy).set("progress", "poll").set("close.timeout", "0s").set("log", "off");
        for (const auto& [name, value] : settings) config.set(name, value);
        messaging::Engine::Parts parts;
        auto faulty = std::make_unique<FaultyTransport>(sim::make_transport(fabric, host), host, plans_);
        faulty->around = around;
        if (rails != nullptr) *rails = faulty.get();
        parts.transports.push_back(std::move(faulty));
        parts.clock = &SimHosts::now;
        return std::make_unique<messaging::Engine>(config, std::move(parts));
    }

    /// The clock of all that runs on this fabric.
    static base::Nanoseconds now() {
        auto* hosts = current();
        if (auto* other = std::exchange(hosts->meanwhile_, nullptr); other != nullptr) {
            hosts->look({other});
            hosts->meanwhile_ = other;
        }
        return hosts->fabric.now();
    }

    /// One look by each engine, then the fabric's next event, or a little time when nothing is under way; until it holds.
    /// Fails the test after `limit` of simulated time.
    template <typename Holds>
    void until(std::initializer_list<messaging::Engine*> engines, Holds holds,
               base::Nanoseconds limit = 20 * base::second) {
        const auto end = fabric.now() + limit;
        while (!holds()) {
            look(engines);
            if (fabric.now() > end) FAIL("not within " << limit / base::second << " simulated seconds");
        }
    }

    /// One message, until both sides are done with it.
    void deliver(messaging::Engine& from, Peer receiver, messaging::Engine& to, Peer sender, std::size_t bytes) {
        const auto data = pattern(bytes);
        std::vector<std::byte> got(bytes);
        const MutableBuffer in(got);
        const ConstBuffer out(data);
        auto receive = to.irecv(sender, 1, {&in, 1}, nullptr);
        auto send = from.isend(receiver, 1, {&out, 1}, nullptr);
        until({&from, &to}, [&] {
            if (send.active()) static_cast<void>(from.test(send));
            if (receive.active()) static_cast<void>(to.test(receive));
            return !send.active() && !receive.active();
        });
        CHECK(same(got, data));
    }

    /// The same as `until` with one engine whenever another reads the clock, for as long as what is returned lives: for calls
    /// that end when something has happened.
    [[nodiscard]] std::shared_ptr<void> keep_going(messaging::Engine& engine) {
        meanwhile_ = &engine;
        return {this, [](SimHosts* hosts) { hosts->meanwhile_ = nullptr; }};
    }

    sim::Fabric fabric;
    std::vector<std::pair<std::string, std::string>> settings;  // of engines that start from now on
    decltype(FaultyTransport::around) around;                   // the same: what their rails are put into
    base::Nanoseconds look_each = 50'000;  // at the latest; who measures must look more often to believe what he sees

private:
    static SimHosts*& current() {
        static SimHosts* hosts = nullptr;
        return hosts;
    }

    void look(std::initializer_list<messaging::Engine*> engines) {
        bool any = false;
        for (auto* engine : engines) any = engine->progress() || any;
        if (any) return;
        const auto next = fabric.next_event();
        fabric.advance_to(std::min(next.value_or(fabric.now() + look_each), fabric.now() + look_each));
    }

    messaging::Engine* meanwhile_ = nullptr;

    FaultyTransport::Plans plans_;
};

/// Two hosts, a and b.
class SimPair {
public:
    explicit SimPair(std::string_view policy, FaultyTransport::Plans plans = {}, std::uint64_t seed = 1, int rails = 2,
                     const Config& of_a = {}, const Config& of_b = {})
        : hosts(seed, std::move(plans)) {
        // The second rail is slower by far, so that frames overtake each other.
        for (int i = 0; i < rails; ++i) {
            const auto timing = sim::simple_timing(2000 + 30000 * i, 300, 300, 400, i == 0 ? 1.0 : 4.0);
            const auto number = std::to_string(i);
            for (const char* host : {"a", "b"}) {
                hosts.fabric.add_rail(host, {.device = "eth" + number, .network = "net" + number, .timing = timing});
            }
        }
        a = hosts.start("a", policy, &rails_a, of_a);
        b = hosts.start("b", policy, &rails_b, of_b);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
    }

    template <typename Holds>
    void until(Holds holds) {
        hosts.until({a.get(), b.get()}, holds);
    }

    SimHosts hosts;
    FaultyTransport* rails_a = nullptr;  // owned by the engines
    FaultyTransport* rails_b = nullptr;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;
};

/// The steps that a rail of host a or b takes in an exchange without faults.
template <typename Exchange>
std::uint64_t steps_without_faults(const std::string& policy, const std::string& host, const std::string& device,
                                   Exchange exchange) {
    SimPair pair(policy);
    exchange(pair);
    return (host == "a" ? pair.rails_a : pair.rails_b)->rails.at(device)->steps();
}

/// Pairs of which one rail of host a loses its link: at its first step, at its second (instrumented: its sixth), and so on.
template <typename Exchange>
void with_link_killed_at_each_step(const std::string& policy, const std::string& device, Exchange exchange) {
    const auto steps = steps_without_faults(policy, "a", device, exchange);
    REQUIRE(steps > 20);
    for (std::uint64_t n = 1; n <= steps; n += each(1)) {
        const auto plan = "kill_link@" + std::to_string(n);
        INFO(policy << " " << device << " " << plan);
        SimPair pair(policy, {{"a/" + device, transports::FaultPlan::parse(plan)}});
        exchange(pair);
    }
}

/// Pairs that have these faults on every rail, each from another seed.
template <typename Exchange>
void with_random_faults(const std::string& faults, Exchange exchange) {
    for (std::uint64_t seed = 1; seed <= 20; seed += each(1)) {
        FaultyTransport::Plans plans;
        std::string said;
        for (const char* rail : {"a/eth0", "a/eth1", "b/eth0", "b/eth1"}) {
            plans[rail] = transports::FaultPlan::parse("seed=" + std::to_string(seed * 4 + plans.size()) + faults);
            said += std::string(rail) + ":" + plans[rail].text() + " ";
        }
        INFO(said);
        SimPair pair(seed % 2 == 0 ? "vft" : "round_robin", plans, seed);
        exchange(pair);
    }
}

}  // namespace railmux::test

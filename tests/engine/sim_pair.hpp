// Two engines on a simulated fabric under its virtual clock, each rail wrapped in a FaultyRail with a plan of its own.
//
// Threads: one; nothing here depends on the machine's time.
// Lifetime: one SimPair at a time (an engine's clock is a plain function); the fabric outlives the engines.
#pragma once

#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "messaging/engine.hpp"
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
        return rail;
    }

    std::map<std::string, transports::FaultyRail*> rails;  // owned by the engine

private:
    std::unique_ptr<Transport> inner_;
    std::string host_;
    const Plans& plans_;
};

class SimPair {
public:
    explicit SimPair(FaultyTransport::Plans plans = {}, std::uint64_t seed = 1, int rails = 2)
        : fabric(seed), plans_(std::move(plans)) {
        clock_fabric() = &fabric;
        // The second rail is slower by far, so that frames overtake each other.
        for (int i = 0; i < rails; ++i) {
            const auto timing = sim::simple_timing(2000 + 30000 * i, 300, 300, 400, i == 0 ? 1.0 : 4.0);
            const auto number = std::to_string(i);
            for (const char* host : {"a", "b"}) {
                fabric.add_rail(host, {.device = "eth" + number, .network = "net" + number, .timing = timing});
            }
        }
        a = start("a", rails_a);
        b = start("b", rails_b);
        to_b = a->add_peer(b->address());
        to_a = b->add_peer(a->address());
    }
    ~SimPair() {
        a.reset();
        b.reset();
        clock_fabric() = nullptr;
    }

    /// One look by each side, then the fabric's next event, or a little time when nothing is under way.
    void step() {
        const bool any = a->progress() | b->progress();
        if (any) return;
        const auto next = fabric.next_event();
        fabric.advance_to(std::min(next.value_or(fabric.now() + 50'000), fabric.now() + 50'000));
    }

    /// Until it holds; fails the test after `limit` of simulated time.
    template <typename Holds>
    void until(Holds holds, base::Nanoseconds limit = 20 * base::second) {
        const auto end = fabric.now() + limit;
        while (!holds()) {
            step();
            if (fabric.now() > end) FAIL("not within " << limit / base::second << " simulated seconds");
        }
    }

    sim::Fabric fabric;
    std::unique_ptr<messaging::Engine> a;
    std::unique_ptr<messaging::Engine> b;
    Peer to_b;
    Peer to_a;
    FaultyTransport* rails_a = nullptr;  // owned by the engines
    FaultyTransport* rails_b = nullptr;

private:
    static sim::Fabric*& clock_fabric() {
        static sim::Fabric* fabric = nullptr;
        return fabric;
    }
    static base::Nanoseconds now() { return clock_fabric()->now(); }

    std::unique_ptr<messaging::Engine> start(const std::string& host, FaultyTransport*& rails) {
        Config config;
        // Nobody progresses the other side while one is destroyed: no waiting for goodbyes.
        config.set("policy", "round_robin").set("progress", "poll").set("close.timeout", "0s").set("log", "off");
        messaging::Engine::Parts parts;
        auto faulty = std::make_unique<FaultyTransport>(sim::make_transport(fabric, host), host, plans_);
        rails = faulty.get();
        parts.transports.push_back(std::move(faulty));
        parts.clock = &SimPair::now;
        return std::make_unique<messaging::Engine>(config, std::move(parts));
    }

    FaultyTransport::Plans plans_;
};

}  // namespace railmux::test

// FaultyRail: any rail, with faults. Everything but the faults of its plan keeps the contract; with an empty plan it
// only counts and passes on.
//
//   FaultyRail rail(std::move(real), FaultyRail::Plan::parse("kill_link@37"));
//   for (n = 1; n <= steps of a run without faults; ++n) ... a run with kill_link@n ...
//
// Faults act on links from their first event on; a work for a link that is not up passes untouched.
//
// Threads: one engine at a time, as every Rail.
// Lifetime: owns the rail below. Events held back are copies.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "transports/fault_plan.hpp"
#include "transports/transport.hpp"

namespace railmux::transports {

class FaultyRail final : public Rail {
public:
    using Plan = FaultPlan;

    FaultyRail(std::unique_ptr<Rail> rail, Plan plan);

    [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
    [[nodiscard]] std::uint64_t works() const noexcept { return works_; }
    [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
    [[nodiscard]] std::uint64_t steps() const noexcept { return works_ + events_; }
    /// Works corrupted so far.
    [[nodiscard]] std::uint64_t corruptions() const noexcept { return corruptions_; }

    [[nodiscard]] const RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return rail_->address(); }
    [[nodiscard]] Reachability reach(std::span<const std::byte> address) const override {
        return rail_->reach(address);
    }
    [[nodiscard]] LinkId connect(std::span<const std::byte> address, std::span<const std::byte> hello) override {
        const auto link = rail_->connect(address, hello);
        if (!plan_.empty()) links_.try_emplace(key(link));
        return link;
    }
    void accept(LinkId link, std::span<const std::byte> reply) override { rail_->accept(link, reply); }
    void refuse(LinkId link, std::span<const std::byte> reply) override { rail_->refuse(link, reply); }
    void disconnect(LinkId link) override;
    [[nodiscard]] std::string describe(LinkId link) const override { return rail_->describe(link); }
    [[nodiscard]] Pulse pulse(LinkId link) noexcept override { return rail_->pulse(link); }
    [[nodiscard]] std::optional<std::uint64_t> underway(LinkId link) noexcept override { return rail_->underway(link); }
    void want_arrivals(LinkId link) noexcept override { rail_->want_arrivals(link); }
    void look_everywhere() noexcept override { rail_->look_everywhere(); }
    [[nodiscard]] bool prefers_get(LinkId link, std::uint64_t bytes) noexcept override {
        return rail_->prefers_get(link, bytes);
    }
    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, Access access) override {
        return rail_->add_region(memory, access);
    }
    void drop_region(const Region& region) noexcept override { rail_->drop_region(region); }
    [[nodiscard]] std::size_t post(std::span<const Work> works) noexcept override;
    [[nodiscard]] std::size_t poll(std::span<Event> events) noexcept override;
    [[nodiscard]] int arm() noexcept override;

private:
    static constexpr std::uint64_t forever = ~std::uint64_t{0};

    struct LinkState {
        bool up = false;
        bool ended = false;               // its link_down is held back here
        bool closed = false;              // by the caller: stalls no more
        std::uint32_t outstanding = 0;    // works accepted whose done has not been handed out
        std::uint64_t stalled_until = 0;  // poll number
    };
    struct Held {
        Event event;
        std::vector<std::byte> data;
        std::string text;
        std::uint64_t release = 0;  // poll number
    };
    struct Deferred {
        Work work;
        std::vector<Segment> segments;
        std::uint64_t release = 0;
    };
    struct Lost {
        LinkId link;
        std::uint64_t cookie = 0;
    };
    struct Corrupted {
        LinkId link;
        std::vector<std::byte> bytes;
    };

    // post
    [[nodiscard]] bool post_one(const Work& work);
    [[nodiscard]] bool take_over(const Work& work, LinkState& state);
    [[nodiscard]] Segment corrupt(const Work& work);
    void defer(const Work& work, std::uint64_t release);
    void step(LinkId link);

    // poll
    void post_deferred();
    [[nodiscard]] std::size_t hand_out_lost(std::span<Event> events);
    [[nodiscard]] std::size_t hand_out_held(std::span<Event> events);
    [[nodiscard]] bool filter(const Event& event);
    [[nodiscard]] bool must_wait(const Event& event);
    void hold(const Event& event, std::uint64_t release);
    void handed_out(const Event& event);

    [[nodiscard]] static std::uint64_t key(LinkId id) noexcept { return std::uint64_t{id.generation} << 32 | id.index; }
    [[nodiscard]] const FaultRule* hit(Fault fault, std::uint64_t count);
    [[nodiscard]] LinkState* find(LinkId link);
    [[nodiscard]] bool stalled(LinkId link);
    [[nodiscard]] bool deferring(LinkId link) const;
    void lose_deferred(LinkId link);

    std::unique_ptr<Rail> rail_;
    Plan plan_;
    RailTraits traits_;
    std::mt19937_64 random_;
    std::uint64_t offers_ = 0;
    std::uint64_t works_ = 0;
    std::uint64_t events_ = 0;
    std::uint64_t frames_ = 0;
    std::uint64_t polls_ = 0;
    std::uint64_t corruptions_ = 0;
    bool refused_ = false;  // since the last arm
    std::unordered_map<std::uint64_t, LinkState> links_;
    std::deque<Deferred> deferred_;    // works not yet given to the rail
    std::deque<Lost> lost_;            // works that complete as link_lost with the next poll
    std::deque<Corrupted> corrupted_;  // what rails carry instead of the callers' bytes, until their links are gone
    std::deque<Held> held_;            // events not yet handed out
    std::deque<Held> lent_;            // events handed out by the last poll
};

}  // namespace railmux::transports

// SimRail: a rail of the fabric: its links, what it is sending, and the events that wait for its poll.
//
// Threads: one thread, the fabric's.
// Lifetime: registered with the Core while it lives; the Core outlives it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "transports/link_slots.hpp"
#include "transports/regions.hpp"
#include "transports/sim/core.hpp"

namespace railmux::transports::sim {

inline constexpr std::uint32_t max_gather = 8;  // segments kept inside a queued work, so that queueing allocates little

class SimRail final : public Rail {
public:
    SimRail(Core& core, std::uint32_t device);
    ~SimRail() override;

    [[nodiscard]] const RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return address_; }
    [[nodiscard]] Reachability reach(std::span<const std::byte> address) const override;
    [[nodiscard]] LinkId connect(std::span<const std::byte> address, std::span<const std::byte> hello) override;
    void accept(LinkId link, std::span<const std::byte> reply) override;
    void refuse(LinkId link, std::span<const std::byte> reply) override;
    void disconnect(LinkId link) override;
    [[nodiscard]] std::string describe(LinkId link) const override;
    [[nodiscard]] Pulse pulse(LinkId link) noexcept override;
    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, Access access) override;
    void drop_region(const Region& region) noexcept override { regions_.drop(region); }
    [[nodiscard]] std::size_t post(std::span<const Work> works) noexcept override;
    [[nodiscard]] std::size_t poll(std::span<Event> events) noexcept override;
    [[nodiscard]] int arm() noexcept override { return -1; }

    // Called by the core when the clock gets there.
    void arrive(FlightNumber number);
    void sender_event();
    void cut_from(std::uint32_t device, Cut how);
    void go_down(std::string_view cause);
    void come_up();
    void tell_of_devices();

private:
    enum class State : std::uint8_t { connecting, requested, up };

    struct Link {
        State state = State::connecting;
        End peer;
        std::uint32_t outstanding = 0;  // works accepted whose done has not been polled
        bool silent = false;            // cut: nothing leaves or arrives any more
        bool unheard = false;           // ... and something was sent since
        std::uint64_t looks = 0;        // of pulse()
        std::uint64_t received = 0;     // frames and puts
        Ticks floor = 0;                // nothing may arrive at the peer before this
        Ticks latest = 0;               // when the last of what is in flight arrives
    };

    struct Segments {
        std::array<Segment, max_gather> list;
        std::uint32_t count = 0;
        std::uint64_t bytes = 0;
    };

    /// A work accepted and not yet done, or an answer to somebody's get.
    struct Sending {
        Op op = Op::send;
        bool answer = false;   // to a get: bytes come from the region, nobody waits for done
        bool settled = false;  // its done was given, or is somebody else's business
        bool notify = false;
        std::uint32_t immediate = 0;
        LinkId link;
        std::uint64_t cookie = 0;
        Segments segments;
        RegionKey key;
        std::uint64_t offset = 0;
        std::uint64_t wait = 0;  // answer: the asker's
        Ticks ready = 0;
    };

    /// A work that left and is done only when the other side answers.
    struct Wait {
        bool used = false;
        std::uint32_t serial = 0;
        LinkId link;
        std::uint64_t cookie = 0;
        Segments segments;  // get: where the bytes go
    };

    struct Pending {
        Event event;
        FlightNumber flight = no_flight;  // whose bytes are event.data
        std::string text;
    };

    [[nodiscard]] LinkId fail_connect(LinkId link, std::string text);
    void enqueue(const Work& work, Link& link);
    void start_next(Ticks free_at);
    void leave(Sending& sending);
    void fill(Flight& flight, Sending& sending);
    void finish();
    [[nodiscard]] std::uint64_t add_wait(const Sending& sending);
    [[nodiscard]] Wait* find_wait(std::uint64_t number, LinkId link) noexcept;

    void arrive_connect(FlightNumber number);
    void arrive_accepted(FlightNumber number);
    void arrive_put(FlightNumber number);
    void arrive_get(FlightNumber number);
    void arrive_answer(FlightNumber number);
    void refuse_put(const Flight& flight);
    void acknowledge(const Flight& flight, WorkStatus status);

    [[nodiscard]] End own_end(LinkId link) const noexcept;
    void say_goodbye(LinkId id, const Link& link, std::string_view cause);
    void end_link(LinkId id, std::string text, FlightNumber reply = no_flight);
    void push(const Event& event, FlightNumber flight = no_flight, std::string text = {});
    void push_done(LinkId link, std::uint64_t cookie, WorkStatus status);
    void hand_out(Pending& pending, Event& event);

    Core& core_;
    std::uint32_t device_;
    RailTraits traits_;
    std::vector<std::byte> address_;
    RegionTable regions_;
    LinkSlots<Link> links_;
    bool down_ = false;

    std::deque<Sending> queue_;  // the front one is leaving while serving_
    bool serving_ = false;
    bool left_ = false;  // its bytes are in flight; the rail is not free yet
    Ticks deliver_ = 0;
    Ticks free_at_ = 0;
    Bucket bucket_;
    std::vector<Wait> waits_;

    struct Lost {
        LinkId link;
        std::uint64_t cookie = 0;
    };
    std::deque<Lost> lost_;  // posted to a link that is not up; handed out first, so before a link_down in pending_
    std::deque<Pending> pending_;  // deque: what is lent to the caller stays where it is
    std::size_t lent_ = 0;         // at the front, until the next poll
};

}  // namespace railmux::transports::sim

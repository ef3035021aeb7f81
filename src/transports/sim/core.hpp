// Core: the inside of a Fabric: the clock with what is due, the hosts and devices, and everything that is in flight.
//
// Threads: one thread.
// Lifetime: owned by the Fabric; outlives the SimRails, which register with it while they are open.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transports/sim/fabric.hpp"

namespace railmux::transports::sim {

class SimRail;

/// One side of a link, for the other side. The incarnation tells a rail from one opened later on the same device.
struct End {
    std::uint32_t device = 0;
    std::uint32_t incarnation = 0;
    LinkId link;
};

enum class FlightKind : std::uint8_t { connect, accepted, refused, goodbye, frame, put, get, get_reply, ack };

/// Something on its way from one rail to another. Kept by its number in a pool; its bytes stay allocated for the next.
struct Flight {
    FlightKind kind{};
    End from;
    End to;
    std::vector<std::byte> bytes;
    std::string_view cause;  // goodbye: a literal
    RegionKey key;           // put, get
    std::uint64_t offset = 0;
    std::uint64_t size = 0;  // get
    std::uint64_t wait = 0;  // who at the sender waits for the answer: get, get_reply, ack, and put or frame if acked
    std::uint32_t immediate = 0;
    bool notify = false;
    WorkStatus status = WorkStatus::ok;
    Ticks o_r = 0;
    Ticks due = 0;
};

using FlightNumber = std::uint32_t;
inline constexpr FlightNumber no_flight = ~FlightNumber{0};

struct Host {
    std::string name;
    Ticks cpu_free = 0;
};

struct Device {
    std::uint32_t host = 0;
    std::string name;  // "host/device"
    RailOptions options;
    std::map<std::uint32_t, Timing> towards;  // where it differs from options.timing, by device
    SimRail* rail = nullptr;                  // while open
    std::uint32_t incarnation = 0;
    bool down = false;
    std::string cause;
    Counters counters;

    [[nodiscard]] const Timing& timing(std::uint32_t to) const;
};

class Core {
public:
    explicit Core(std::uint64_t seed) : seed_(seed), random_(seed) {}

    // --- Time --------------------------------------------------------------------------------------------------------
    [[nodiscard]] base::Nanoseconds now() const noexcept { return now_; }
    /// The exact time of what happens now: of the event being handled, else of the clock.
    [[nodiscard]] Ticks ticks() const noexcept { return ticks_; }
    void advance_to(base::Nanoseconds time);
    void settle() { advance_to(now_); }
    [[nodiscard]] std::optional<base::Nanoseconds> next_event() const noexcept;

    // --- Hosts and devices -------------------------------------------------------------------------------------------
    [[nodiscard]] const Host* find_host(std::string_view name) const noexcept;
    [[nodiscard]] Host& host(std::uint32_t device) noexcept { return hosts_[devices_[device].host]; }
    [[nodiscard]] Device& device(std::uint32_t number) noexcept { return devices_[number]; }
    [[nodiscard]] const std::deque<Device>& devices() const noexcept { return devices_; }
    [[nodiscard]] std::uint32_t find(std::string_view rail) const;  // by "host/device"; throws Error
    std::uint32_t add(std::string_view host, const RailOptions& options);
    [[nodiscard]] bool is_open(const End& end) const noexcept;
    [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }

    // --- Paths -------------------------------------------------------------------------------------------------------
    void cut(std::uint32_t a, std::uint32_t b, Cut how);
    void restore(std::uint32_t a, std::uint32_t b) { cuts_.erase(std::minmax(a, b)); }
    [[nodiscard]] std::optional<Cut> cut_between(std::uint32_t a, std::uint32_t b) const;
    void rail_down(std::uint32_t number, std::string_view cause);

    // --- What is under way -------------------------------------------------------------------------------------------
    [[nodiscard]] FlightNumber new_flight(FlightKind kind, const End& from, const End& to);
    [[nodiscard]] Flight& flight(FlightNumber number) noexcept { return flights_[number]; }
    void land(FlightNumber number) { free_flights_.push_back(number); }
    /// Arrives at `due`, if the path is not cut then.
    void launch(FlightNumber number, Ticks due);
    /// Without anything to say: sent at once, there o_s(1) + L + o_r(1) later but not before `not_before`.
    void launch_control(FlightNumber number, Ticks not_before = 0);
    /// Calls the device's rail at that time: what it is sending has left, or the rail is free again.
    void schedule_sender(std::uint32_t device, Ticks at);
    [[nodiscard]] Ticks noise(const Timing& timing);

private:
    struct Due {
        Ticks at;
        std::uint64_t order;  // what was scheduled first happens first
        FlightNumber flight;  // or no_flight: a sender
        std::uint32_t device;
        std::uint32_t incarnation;
        [[nodiscard]] friend bool operator<(const Due& a, const Due& b) noexcept {  // the heap's top is the earliest
            return a.at != b.at ? a.at > b.at : a.order > b.order;
        }
    };
    void handle(const Due& due);
    void arrive(FlightNumber number);

    std::uint64_t seed_;
    std::mt19937_64 random_;
    base::Nanoseconds now_ = 0;
    Ticks ticks_ = 0;
    std::uint64_t next_order_ = 0;
    std::priority_queue<Due> due_;
    std::deque<Host> hosts_;
    std::deque<Device> devices_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Cut> cuts_;
    std::deque<Flight> flights_;
    std::vector<FlightNumber> free_flights_;
};

}  // namespace railmux::transports::sim

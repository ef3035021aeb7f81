// Fabric: networks inside one process, under a virtual clock that only its owner moves. Rails opened on it behave by
// LogGP (timing.hpp says exactly how); everything is determined by the calls made and the seed.
//
//   sim::Fabric fabric;
//   const auto timing = sim::simple_timing(1000, 100, 80, 50, 0.08);  // L, o_s, o_r, g in ns; G in ns per byte
//   auto a = fabric.open("a", {.device = "eth0", .network = "red", .timing = timing});
//   auto b = fabric.open("b", {.device = "eth0", .network = "red"});
//   ... connect, post ...; fabric.advance_to_next_event(); ... poll ...
//
// Rails on networks of the same name reach each other. A direction of a link behaves as the timing of the sending rail
// says, unless set_timing(from, to, ...) gave it one of its own. What a rail sends leaves one frame after the other, in
// the order posted, whatever the link; bytes are read from the caller's buffers at the moment the frame leaves, so that
// a buffer touched before its `done` shows at the receiver. A put takes the time of a frame. A get is a request that
// takes o_s(1) + L, and an answer of L + (s-1) G + o_r(s) that waits its turn on the other rail. Connection set-up and
// goodbyes take o_s(1) + L + o_r(1) and occupy nothing. There is no limit to what an unpolled receiver holds.
//
// Rails are named "host/device" in the calls below.
//
// Threads: one thread for the fabric and all its rails.
// Lifetime: outlives its rails.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transports/sim/timing.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::sim {

class Core;

struct RailOptions {
    std::string device = "eth0";  // the rail is called "sim:eth0"
    std::string network = "net";
    Timing timing{};
    // Inside a link: with false, what noise_mean_ns delays is overtaken by what it does not, puts included.
    bool ordered = true;
    bool put = true;
    bool get = true;
    bool notify = true;
    bool done_is_delivered = false;  // `done` comes when the other side has the bytes and L later this one knows
    bool keepalive = false;          // wants keepalives
    bool confirms = false;           // ... and pulse() tells
    bool by_processors = false;      // as it says; nothing here makes it true
    bool bad_put_ends_link = false;  // and it is told: with done_is_delivered
    std::uint32_t max_frame = 65536;
    std::uint32_t max_hello = 1024;
    std::uint32_t max_reply = 1024;
    std::uint64_t max_put = 1 << 20;
    std::uint64_t max_region = ~std::uint64_t{0};  // as if no more memory could be locked
    std::uint32_t max_segments = 8;                // at most 8
    std::uint32_t tx_depth = 64;
    std::uint64_t speed_bps = 0;
    int numa_node = -1;
};

/// How a path between two rails fails.
enum class Cut : std::uint8_t {
    loud,    // links die at once on both sides; connects end in link_down
    silent,  // nothing arrives any more and nobody is told; works go on being `done` as they leave the rail
};

struct Counters {
    std::uint64_t frames = 0;  // that left this rail
    std::uint64_t frame_bytes = 0;
    std::uint64_t puts = 0;
    std::uint64_t put_bytes = 0;
    std::uint64_t gets = 0;  // answered by this rail
    std::uint64_t get_bytes = 0;
    std::uint64_t discarded = 0;  // puts and gets towards this rail with a wrong key, bounds or right
};

class Fabric {
public:
    explicit Fabric(std::uint64_t seed = 1);
    ~Fabric();
    Fabric(const Fabric&) = delete;
    Fabric& operator=(const Fabric&) = delete;

    // --- Time --------------------------------------------------------------------------------------------------------

    [[nodiscard]] base::Nanoseconds now() const noexcept;
    void advance(base::Nanoseconds by);
    void advance_to(base::Nanoseconds time);  // a time in the past is now
    /// When something happens next, if anything is under way. What has happened already waits for its rail's poll.
    [[nodiscard]] std::optional<base::Nanoseconds> next_event() const noexcept;
    /// Goes there; false, and nothing moves, when nothing is under way.
    bool advance_to_next_event();

    /// Until when the CPU of `host` is taken by the o_s of what it posted, and by the o_r of what it polled later than
    /// it was there (o_r runs while a frame is waited for; a poll that comes t late pays min(t, o_r) from then on).
    [[nodiscard]] base::Nanoseconds cpu_free(std::string_view host) const noexcept;

    // --- Rails -------------------------------------------------------------------------------------------------------

    /// A device that make_transport(*this, host) lists. Throws Error(invalid_argument) when the host has it already.
    void add_rail(std::string_view host, const RailOptions& options);
    /// Opens an added device; one rail at a time. Throws Error.
    [[nodiscard]] std::unique_ptr<Rail> open(std::string_view host, std::string_view device);
    /// Both in one.
    [[nodiscard]] std::unique_ptr<Rail> open(std::string_view host, const RailOptions& options);
    [[nodiscard]] std::vector<RailInfo> scan(std::string_view host) const;

    // --- Changes while running ---------------------------------------------------------------------------------------

    /// From the next frame that starts to leave.
    void set_timing(std::string_view rail, const Timing& timing);
    void set_timing(std::string_view from, std::string_view to, const Timing& timing);
    /// Cuts what is between two rails until restore(). Links cut silently stay dead; new ones work after restore().
    void cut(std::string_view rail, std::string_view other, Cut how);
    void restore(std::string_view rail, std::string_view other);
    /// The device goes: its links die on both sides, then rail_down. After restore_rail() it can be opened again, and a rail
    /// that was open says rail_up.
    void rail_down(std::string_view rail, std::string_view cause);
    void restore_rail(std::string_view rail);

    [[nodiscard]] const Counters& counters(std::string_view rail) const;

private:
    std::unique_ptr<Core> core_;
};

/// A transport named "sim" whose devices are the fabric's rails of one host: what a whole engine in a test opens. The
/// fabric outlives it.
[[nodiscard]] std::unique_ptr<Transport> make_transport(Fabric& fabric, std::string host);

}  // namespace railmux::transports::sim

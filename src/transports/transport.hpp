// The transport contract: what a kind of network must do to be a rail. This header is the specification; a porter needs
// nothing else. A new transport is one folder, one line in builtin.cpp, one line in the contract suite.
//
// Threads: a Rail belongs to one engine; its calls never overlap. Debug builds assert it. Nothing here takes a lock.
// Lifetime: Transport outlives its Rails. All views (frames, hellos, reasons) in an Event are lent until the next poll on
// that rail. Work descriptors and segment lists are read during post only; the bytes they name until `done`.
//
// The rules, which the contract suite checks on every transport:
//  1. post takes a prefix of the works and returns its length. A short post is the whole flow control; it is not an error:
//     what was refused may be offered again after the next poll, whatever that brings.
//     A transport queues nothing beyond `info().tx_depth` works a link: the only backlog is the one the scheduler sees.
//  2. Every accepted work yields exactly one `done` event, and only from poll, never inside post. `done` means the buffer
//     is the caller's again, not that anything was delivered. But a `quiet` send of at most `info().quiet_max` bytes is over
//     when it is accepted: nothing more is heard of it, whatever becomes of its link, and rules 5 and 6 do not speak of it.
//  3. No order is promised between links. Within a link, `info().ordered` says whether frames arrive in the order posted,
//     and a frame posted after a put on that link is received only after the put's bytes are in place.
//  4. `received` frames are whole, at most `info().max_frame` bytes, and lent until the next poll on that rail.
//  5. When a link dies, every outstanding work on it completes as `link_lost`; then comes exactly one `link_down`; then
//     nothing more for that LinkId. A post to a link that is not up (dead, stale, still connecting) is accepted and
//     completes as `link_lost`: before the link_down if that has not been polled yet.
//  6. After disconnect(link) the same happens as in 5: outstanding works flush, then one `link_down`. Data accepted before
//     disconnect may or may not arrive.
//  7. Nothing throws out of a Rail's hot calls (post, poll); set-up calls (open) may throw Error.
//  8. No retries beyond the fabric's own, and no timers: time limits are the caller's business.
//  9. drop_region returns only when no byte will be written to the region any more, and none be read from it that a get hands
//     out as `ok`, whatever is still in flight (no work outstanding names it in a Segment); a put to an unknown key, out of
//     bounds or without the right is discarded, counted, and harms nothing else.
//     Fabrics that check puts by themselves may know no other answer than to end the connection (RDMA does): with
//     `info().bad_put_ends_link` such a put or get completes as `access_denied` or `link_lost`, and its link, no other, goes
// down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/result.hpp"

#include <railmux/config.hpp>
#include <railmux/error.hpp>
#include <railmux/stats.hpp>

namespace railmux::transports {

/// One connection of a rail. The generation makes a stale id harmless.
struct LinkId {
    std::uint32_t index = ~std::uint32_t{0};
    std::uint32_t generation = 0;
    // One comparison: ids are compared with each frame.
    friend constexpr bool operator==(LinkId a, LinkId b) noexcept { return a.both() == b.both(); }
    [[nodiscard]] constexpr std::uint64_t both() const noexcept { return index | std::uint64_t{generation} << 32; }
};

/// Names a region to other processes. Unguessable: `secret` is random.
struct RegionKey {
    std::uint64_t id = 0;
    std::uint64_t secret = 0;
    friend constexpr bool operator==(const RegionKey&, const RegionKey&) noexcept = default;
};

/// What may be done with a region, by others, or by this process's own works.
enum class Access : std::uint8_t {
    local = 0,  // to put from
    remote_read = 1,
    remote_write = 2,
    remote_read_write = 3,
    local_write = 4,  // to put from and to get into; others may do nothing
};

/// A registered piece of memory. `local` goes into Segment::region: a rail that would copy the bytes sends them as they are
/// then. 0 where that makes no difference.
struct Region {
    RegionKey key;
    std::uint64_t local = 0;
};

/// A piece of local memory: source of a send or put, destination of a get.
struct Segment {
    std::byte* data = nullptr;  // not written to by send and put
    std::size_t size = 0;
    std::uint64_t region = 0;  // Region::local of a region of this rail that covers it; 0: not registered
};

enum class Op : std::uint8_t { send, put, get };

/// One operation to post. Trivially copyable.
struct Work {
    Op op = Op::send;
    bool notify = false;  // put: the target gets `notified` with `immediate` once the bytes are in place
    // send, put: the network carries so little that what it is given at once may be too much for it (docs/transports.md, tcp).
    // A rail to which that is all the same need not look at it.
    bool slow = false;
    bool quiet = false;  // send of at most info().quiet_max bytes: over when it is accepted, without a `done`
    std::uint32_t immediate = 0;
    LinkId link{};
    std::span<const Segment> segments{};  // at most info().max_segments; sum at most max_frame (send) or max_put
    RegionKey remote{};                   // put, get: the target region ...
    std::uint64_t offset = 0;             // ... and the place in it, in bytes from its start
    std::uint64_t cookie = 0;             // handed back in `done`
};

/// Bytes of its segments.
[[nodiscard]] inline std::size_t payload_of(const Work& work) noexcept {
    std::size_t bytes = 0;
    for (const auto& segment : work.segments) bytes += segment.size;
    return bytes;
}

enum class EventKind : std::uint8_t {
    done,             // link, cookie, status
    received,         // link, data: one frame
    notified,         // link, immediate
    link_up,          // link; at the connecting side `data` is the acceptor's reply
    link_down,        // link, code, text: the cause; `data` the acceptor's reply if it refused
    rail_down,        // text: the cause. Every link has had its link_down before
    rail_up,          // where info().comes_back: connecting makes sense again, in both directions
    connect_request,  // link, data: the hello. Answer with accept or refuse
    devices_changed,  // Transport::scan may find another device than before, of any transport
    // Alone, where there is no other event: poll itself moved bytes of something larger, and goes on with the next poll. A rail
    // that moves bytes in poll must say so, or whoever waits goes to sleep over it.
    moved,
};

enum class WorkStatus : std::uint8_t {
    ok,
    link_lost,      // the link is gone; the bytes may or may not have arrived
    access_denied,  // get (and put where the fabric tells): key, bounds or rights are wrong
};

struct Event {
    EventKind kind = EventKind::done;
    WorkStatus status = WorkStatus::ok;
    // link_down: wrong_version where the other side speaks another version of the transport's own protocol, or only one of the
    // two encrypts; wrong_key where its key is another: nobody waits for that to become right. unreachable for all else.
    ErrorCode code = ErrorCode::unreachable;
    std::uint32_t immediate = 0;
    LinkId link{};
    std::uint64_t cookie = 0;
    std::span<const std::byte> data{};
    std::string_view text{};
    base::Nanoseconds came = 0;  // received: by when this host had it, by base::now_ns; 0: the network does not say
};

/// What every rail takes in one frame: the largest eager message (parameter eager.max) and its headers.
inline constexpr std::uint32_t least_max_frame = 16 * 1024 + 512;

/// Nothing is gained by registering memory that is put from.
inline constexpr std::uint64_t never_register = ~std::uint64_t{0};

/// What a rail is and can do. Immutable once opened.
struct RailTraits {
    std::string name;  // "tcp:eth1": unique within the process
    // Beyond the name, what tells this interface from another of the same name, in other runs and on other networks: its
    // addresses, its GUID. Without anything random, such as a port; empty: the name is all there is.
    std::string identity{};
    std::uint32_t max_frame = 0;     // bytes of one send; at least least_max_frame
    std::uint32_t max_hello = 0;     // bytes of a hello; at least 56
    std::uint32_t max_reply = 0;     // bytes of a reply; at least 64
    std::uint32_t max_segments = 1;  // gather list of one work
    std::uint32_t tx_depth = 0;      // accepted and not yet done works a link holds at most
    std::uint32_t quiet_max = 0;     // bytes of a send that may be quiet (rule 2); 0: none may
    std::uint64_t max_put = 0;       // bytes of one put or get; 0: neither
    bool put = false;
    bool get = false;
    bool notify = false;
    bool inward = false;   // reaches this process only: without a link nothing comes in, and poll() may rest
    bool events = false;   // arm() gives a descriptor to sleep on
    bool ordered = false;  // rule 3
    bool chains = false;   // works that are posted together cost less than one by one, short ones too
    bool stream = false;   // works that are posted together leave as one: the gap is between posts, not between works
    bool done_is_delivered = false;  // `done` implies that the remote side has the bytes
    bool bad_put_ends_link = false;  // rule 9
    bool keepalive = false;   // that an idle link is dead shows only when something is sent: now and then it should be
    bool comes_back = false;  // polled and armed after rail_down, it says rail_up when its device works again
    bool posts_need_polls = false;  // what is posted goes on its way by poll, perhaps, and after arm() nobody says so
    bool by_processors = false;     // those of the two ends move its bytes: no hardware works beside them
    bool shared = false;            // with all processes of this network namespace: they queue behind each other
    bool copies_puts = false;       // out of memory that is not registered, into memory that is
    bool pins = false;              // add_region takes time, and holds the memory: what it does is worth counting
    bool reuses_regions =
        false;  // from and to memory that stays registered it copies nothing, whatever register_from is
    std::uint64_t register_from = never_register;  // a put out of that many bytes in one piece costs less with a region
    int numa_node = -1;
    std::uint64_t speed_bps = 0;  // 0: unknown
};

/// What the network itself tells of a link: the other end's kernel or adapter, whatever the process there does. Counters only
/// grow; what they begin with means nothing.
struct Pulse {
    bool known = false;          // false: this fabric does not tell; where works fail when nobody answers, that must do
    bool outstanding = false;    // something was sent, or asked, that nobody has confirmed yet
    std::uint64_t heard = 0;     // whatever came from the other end, confirmations included
    std::uint64_t received = 0;  // ... and was sent by the process there
    std::uint64_t asked = 0;     // sent again, or asked, because nothing was heard: who is there confirms that at once
};

/// How likely a local rail reaches a remote address, judged without sending anything.
enum class Reach : std::uint8_t {
    never,
    fallback,  // only if nothing better works, e.g. a network card between two processes of one host
    routed,    // through a gateway, perhaps
    direct,    // same subnet, same fabric, same host for loopback
};

struct Reachability {
    Reach reach = Reach::never;
    // One clause for people, e.g. "no IPv6 on rail tcp:eth0", "same subnet 10.77.0.0/24"; empty where `never` goes without
    // saying.
    std::string why;
    // What the administrator has to do so that it is reached, where this host is set up in a way that nobody wants.
    std::string cure{};
};

class Rail {
public:
    virtual ~Rail() = default;
    Rail() = default;
    Rail(const Rail&) = delete;
    Rail& operator=(const Rail&) = delete;

    [[nodiscard]] virtual const RailTraits& traits() const noexcept = 0;

    /// Where others reach this rail: opaque, at most 256 bytes.
    [[nodiscard]] virtual std::span<const std::byte> address() const noexcept = 0;
    [[nodiscard]] virtual Reachability reach(std::span<const std::byte> address) const = 0;

    /// Starts a link; never blocks. Ends in link_up or link_down. A malformed address ends in link_down.
    [[nodiscard]] virtual LinkId connect(std::span<const std::byte> address, std::span<const std::byte> hello) = 0;
    /// Answers a connect_request. accept leads to link_up (or link_down) on both sides; refuse hands `reply` to the
    /// other side with its link_down, as far as the fabric can, and yields one link_down here.
    virtual void accept(LinkId link, std::span<const std::byte> reply) = 0;
    virtual void refuse(LinkId link, std::span<const std::byte> reply) = 0;
    virtual void disconnect(LinkId link) = 0;
    /// The link for people: "10.77.0.1:40022 - 10.77.0.2:5000".
    [[nodiscard]] virtual std::string describe(LinkId link) const = 0;

    /// Looks whether the network confirms what was sent. Costs a system call or less; no time limits here, either (rule 8).
    [[nodiscard]] virtual Pulse pulse([[maybe_unused]] LinkId link) noexcept { return {}; }

    /// How many bytes of works of the link that are `done`, or were quiet, the other end's kernel or adapter has not confirmed
    /// yet, whatever the process there does; what frames them may count, too. None: this fabric does not tell. Costs as much.
    [[nodiscard]] virtual std::optional<std::uint64_t> underway([[maybe_unused]] LinkId link) noexcept {
        return std::nullopt;
    }

    /// From now on Event::came is wanted of what the link brings, as far as the network tells it and it costs next to nothing.
    virtual void want_arrivals([[maybe_unused]] LinkId link) noexcept {}

    /// Whether the other end does better to get the next large message, of so many bytes, over this link at once than to have
    /// it put, for which it first would have to say where to. What it says may change, or be said to find out.
    [[nodiscard]] virtual bool prefers_get([[maybe_unused]] LinkId link,
                                           [[maybe_unused]] std::uint64_t bytes) noexcept {
        return false;
    }

    [[nodiscard]] virtual base::Result<Region> add_region(std::span<std::byte> memory, Access access) = 0;
    virtual void drop_region(const Region& region) noexcept = 0;

    [[nodiscard]] virtual std::size_t post(std::span<const Work> works) noexcept = 0;
    /// post() of one quiet send of these bytes, which are free when it returns; false: refused. Where that is a few
    /// instructions, a work to describe it would be as many again. `slow` as in Work.
    [[nodiscard]] virtual bool send_short(LinkId link, std::span<std::byte> frame, bool slow) noexcept {
        const Segment segment{frame.data(), frame.size(), 0};
        const Work work{.slow = slow, .quiet = true, .link = link, .segments = {&segment, 1}};
        return post({&work, 1}) == 1;
    }
    [[nodiscard]] virtual std::size_t poll(std::span<Event> events) noexcept = 0;
    /// The next poll leaves out nothing by which messages come that others look at once in so many polls: it comes long after
    /// the one before.
    virtual void look_everywhere() noexcept {}

    /// After an empty poll: a descriptor that turns readable when poll may have something; -1 where `events` is false
    /// (whoever sleeps looks at such a rail now and then), or when something came up meanwhile or a poll has made room for
    /// what post refused (poll and post again). The descriptor is the same for the rail's life. What is posted after arm()
    /// takes nothing from that; a poll does: arm again.
    [[nodiscard]] virtual int arm() noexcept = 0;
};

/// What a transport needs from its surroundings.
struct Services {
    const Config& config;
    base::Logger& log;
    bool survey = false;  // a person asks what there is: scan() also looks at what takes time and is off by default
};

class Transport {
public:
    virtual ~Transport() = default;
    Transport() = default;
    Transport(const Transport&) = delete;
    Transport& operator=(const Transport&) = delete;

    [[nodiscard]] virtual std::string_view name() const noexcept = 0;
    /// Every device this transport could use, the unusable ones with their reason; or, with no device at all, one
    /// entry that says why. Never throws for what it finds. A device the user selected by name is usable even if it is
    /// off by default.
    [[nodiscard]] virtual std::vector<RailInfo> scan() = 0;
    /// The same while rails are in use, which must not wait for long: nothing as long as it is being found out elsewhere; then
    /// ask again in some tens of milliseconds.
    [[nodiscard]] virtual std::optional<std::vector<RailInfo>> rescan() { return scan(); }
    /// Opens a device found by scan(). Throws Error.
    [[nodiscard]] virtual std::unique_ptr<Rail> open(const RailInfo& device) = 0;
};

/// All transports built into this library, in order of preference.
[[nodiscard]] std::vector<std::unique_ptr<Transport>> builtin_transports(const Services& services);

}  // namespace railmux::transports

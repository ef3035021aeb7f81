// tcp::Rail: the rail of one interface: its listeners, its links, and one epoll set over all of them.
//
// Sending: post() writes the headers and payloads of many works with one sendmsg. What the socket does not take stays with
// the caller, all but the one work it took a part of.
// Receiving: one staging buffer for all links; a read brings many frames, which are lent out of it until the next poll. The
// bytes of a put are read straight into their region, with the staging buffer behind them in the same system call.
// Threads: one engine at a time, as the contract says.
// Lifetime: closes all its sockets.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log_limit.hpp"
#include "base/pages.hpp"
#include "base/spare_descriptor.hpp"
#include "base/thread_guard.hpp"
#include "transports/event_queue.hpp"
#include "transports/link_table.hpp"
#include "transports/regions.hpp"
#include "transports/tcp/address.hpp"
#include "transports/tcp/departures.hpp"
#include "transports/tcp/interfaces.hpp"
#include "transports/tcp/link.hpp"
#include "transports/tcp/netlink.hpp"
#include "transports/tcp/sockets.hpp"
#include "transports/tcp/stamps.hpp"
#include "transports/tcp/tls.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::tcp {

class Rail final : public transports::Rail {
public:
    /// Where a rail of this interface listens: at most one endpoint per family; nothing where it has no address to use.
    using ChooseEndpoints = std::function<std::vector<Endpoint>(const Interface&)>;

    /// A rail "tcp:<name>" on `interface` that listens where `choose` says, which is asked again when all its addresses have
    /// changed. `encryption` outlives it; nullptr: none. `news` tells of interfaces, where the kernel does. Throws Error.
    Rail(std::string name, const Interface& interface, ChooseEndpoints choose, const SocketOptions& options,
         TlsContext* encryption, std::optional<Netlink> news, base::Logger& log);
    ~Rail() override;
    /// Says what `news` cannot: there are other interfaces than were listed before it was there.
    void tell_of_devices() { events_.tell({.kind = EventKind::devices_changed}); }

    [[nodiscard]] const RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return encoded_address_; }
    [[nodiscard]] Reachability reach(std::span<const std::byte> address) const override;

    [[nodiscard]] LinkId connect(std::span<const std::byte> address, std::span<const std::byte> hello) override;
    void accept(LinkId link, std::span<const std::byte> reply) override;
    void refuse(LinkId link, std::span<const std::byte> reply) override;
    void disconnect(LinkId link) override;
    [[nodiscard]] std::string describe(LinkId link) const override;
    [[nodiscard]] Pulse pulse(LinkId link) noexcept override;
    [[nodiscard]] std::optional<std::uint64_t> underway(LinkId link) noexcept override;
    void want_arrivals(LinkId link) noexcept override;

    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, Access access) override;
    void drop_region(const Region& region) noexcept override;

    [[nodiscard]] std::size_t post(std::span<const Work> works) noexcept override;
    [[nodiscard]] std::size_t poll(std::span<Event> events) noexcept override;
    void look_everywhere() noexcept override { next_look_ = polls_; }
    [[nodiscard]] int arm() noexcept override;

private:
    // Works accepted and not handed out as done, a link: four bursts of 64.
    static constexpr std::uint16_t tx_depth = 256;
    static constexpr std::size_t most_hot = 4;
    static constexpr std::uint64_t lukewarm_polls = 256;  // without data: then its place goes to a link that has some
    static constexpr std::size_t burst = 64;              // works in one system call
    static constexpr std::size_t small_work = 512;        // bytes; copying these is cheaper than describing them
    // The socket copies what it takes, and seldom leaves a part of it: only that has to be kept.
    static constexpr std::uint32_t quiet_max = least_max_frame;
    // Read ahead at most this much in one system call: a few largest frames; larger brings nothing (measured).
    static constexpr std::size_t read_ahead = 128 * 1024;
    static constexpr std::size_t staging_bytes = 256 * 1024;
    static constexpr std::uint64_t first_check = 256 * 1024;    // bytes, until they are looked for at the interface
    static constexpr std::uint32_t listener_tag = 0xFFFFFF00U;  // epoll data of listeners and netlink, above any link
    static constexpr std::uint32_t netlink_tag = 0xFFFFFFFFU;
    static constexpr std::uint32_t timer_tag = 0xFFFFFFFEU;

    // rail.cpp
    void listen(std::span<const Endpoint> endpoints);
    void stop_listening();
    Link& new_link(base::FileDescriptor socket, LinkPhase phase);
    void watch(Link& link, bool write);
    void unwatch(Link& link);
    void heat(Link& link);
    void cool(Link& link);
    void kill(Link& link, std::string_view cause, std::span<const std::byte> reply = {},
              ErrorCode code = ErrorCode::unreachable);
    void rail_down(std::string_view cause);

    // greeting.cpp: until a link is up
    void accept_some(std::size_t listener);
    void begin_stranger(base::FileDescriptor socket, const Listener& listener, const Endpoint& from);
    void displace_oldest();
    void set_timer(base::Nanoseconds left);
    [[nodiscard]] LinkId refuse_to_connect(std::string_view cause);
    void finish_connect(Link& link);
    void read_greeting(Link& link);
    [[nodiscard]] bool read_until(Link& link, std::size_t wanted);
    void greeted(Link& link, const Greeting& greeting);
    void send_greeting(Link& link, GreetingKind kind, std::span<const std::byte> body);
    void expire_strangers();

    // encrypting.cpp: TLS, before the greetings
    [[nodiscard]] bool secured(Link& link);
    [[nodiscard]] bool read_tls_opening(Link& link);
    [[nodiscard]] bool judge_hello(Link& link, std::span<const std::byte> record);
    void refuse_other_encryption(Link& link);
    [[nodiscard]] static std::string cause_of(const Link& link);

    // sending.cpp
    [[nodiscard]] ssize_t encrypt(Link& link, std::span<const iovec> vectors) noexcept;
    [[nodiscard]] ssize_t send(Link& link, std::span<iovec> vectors) noexcept;
    [[nodiscard]] std::size_t write(Link& link, std::span<const Work> works) noexcept;
    [[nodiscard]] std::size_t gather(std::span<const Work> works, std::size_t& vectors, std::size_t& bytes) noexcept;
    void keep_partial(Link& link, const Work& work, std::size_t written) noexcept;
    void write_partial(Link& link) noexcept;

    // receiving.cpp
    void poll_hot(Batch& batch) noexcept;
    void poll_epoll(Batch& batch) noexcept;
    void serve(Link& link, std::uint32_t what, Batch& batch) noexcept;
    void receive(Link& link, Batch& batch) noexcept;
    [[nodiscard]] ssize_t read_plain(Link& link, std::span<iovec> into) noexcept;
    void advance_put(Link& link, std::size_t bytes);
    [[nodiscard]] bool room_to_read() const noexcept;
    void parse(Link& link, Batch& batch) noexcept;
    [[nodiscard]] bool take_work(Link& link, Batch& batch) noexcept;
    void begin_put(Link& link, const StreamHeader& header);
    void carry_rest(Link& link);

    // watching.cpp: the interface itself
    void read_netlink();
    void judge_interface(const Interface* found);
    [[nodiscard]] bool listen_anew(const Interface* found);
    [[nodiscard]] std::string trouble_of(const Interface* found) const;
    void drop_address(const base::IpAddress& lost);
    void rail_up(const Interface& interface);
    [[nodiscard]] static std::optional<std::uint64_t> unconfirmed(const Link& link) noexcept;
    [[nodiscard]] bool routed_elsewhere();
    void check_counters();

    RailTraits traits_;
    SocketOptions options_;
    ChooseEndpoints choose_;
    TlsContext* encryption_;
    base::Logger& log_;
    base::LogLimit said_of_strangers_;
    std::string interface_;
    int interface_index_ = 0;
    RailAddress address_;
    std::vector<std::byte> encoded_address_;
    std::vector<Listener> listeners_;
    base::FileDescriptor epoll_;
    base::FileDescriptor timer_;  // wakes sleepers when the time of a stranger is over
    std::optional<Netlink> netlink_;
    bool look_owed_ = false;  // it told something of the interface that was not looked at yet
    bool down_ = false;
    bool merged_ = false;  // down for good: its interface is another rail's

    LinkTable<Link> links_;
    RegionTable regions_;

    EventQueue events_;

    base::Pages staging_;
    std::size_t staging_at_ = 0;                      // first byte not parsed
    std::size_t staging_end_ = 0;                     // end of what was read
    std::uint32_t staging_link_ = ~std::uint32_t{0};  // whose bytes those are
    WallClock wall_clock_;                            // of the stamps of what is read

    // Links that received lately are read directly, and are not in the epoll set: being in it would add about 150 ns to
    // every packet, in the kernel's path from the sender.
    std::vector<std::uint32_t> hot_;
    std::size_t next_hot_ = 0;
    std::uint64_t polls_ = 0;
    std::uint64_t next_look_ = 0;  // the poll that looks at all sockets again
    std::uint32_t writers_ = 0;    // links that wait for room in their socket
    bool refused_ = false;         // a work, because its link does
    bool room_ = false;            // came since, perhaps without an event that would tell
    // Accepted and without a hello yet, the oldest first; among them some of which that is no longer true.
    std::deque<LinkId> stranger_queue_;
    std::uint32_t strangers_ = 0;
    bool ticking_ = false;
    base::SpareDescriptor spare_;

    std::uint64_t sent_outside_ = 0;  // bytes given to sockets towards other hosts
    std::uint64_t next_check_ = first_check;
    std::optional<std::uint64_t> counter_at_start_;
    Departures departures_;

    // Scratch of write(): small works are copied one behind the other, so that the kernel sees one piece, not a hundred.
    std::array<iovec, burst * 4> vectors_;
    std::array<std::byte, burst * small_work> gathered_;
    std::vector<std::vector<std::byte>> spare_carries_;
    base::ThreadGuard guard_;
};

}  // namespace railmux::transports::tcp

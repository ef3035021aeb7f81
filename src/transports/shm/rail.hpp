// shm::Rail: memory shared with other processes of this node. A link is a Block (block.hpp): a ring each way.
//
// Set-up: a unix socket, by which the connecting side hands over the block (memory.hpp) and both sides the eventfds that wake
// them (greeting.hpp). From then on no system call is made for a frame, unless the receiver sleeps (waking.hpp).
// Frames are copied into the ring by post, and out of it by poll into memory of the receiver's own, from which they are lent:
// nobody can change them while they are read, and their room in the ring is free at once.
// Gets: whoever gets reads the other's memory, as its board says where it may (board.hpp), in its poll. A half of it the
// other side may write meanwhile, in its own poll, when it has seen what is asked (Share): both copy at the same time then,
// each at the speed of its core. What is written to are buffers of works that are outstanding, which no region has to stand
// for.
// Puts: the receiver copies them to their place, out of the ring or, large ones, straight from the sender's memory
// (other_process.hpp). It is always the receiver that writes to its regions, inside poll: keys and bounds are checked by whom
// they protect, and drop_region has nothing to wait for. The sender's buffer is read by others only between post and the
// slot's being taken; who ends a link while the other side reads waits until it has stopped (LinkPhase::ending).
// The end: the socket hangs up when the other side goes, in whatever way, and its pidfd tells if a child has kept the socket.
//
// How others do it: UCX (uct/sm/mm) has one queue for each receiver, on which all senders contend by compare-and-swap, with
// elements whose ownership bit flips each round, larger frames in descriptors of the sender's, and a byte through a unix
// socket for who sleeps; Open MPI's vader a linked queue for each receiver, and for busy pairs a box of 4 KiB with lengths and
// sequence numbers in it. Both take cma for bulk, pulled by the receiver. Here each pair has its ring from the start, because a
// ring that two share needs no atomic read-modify-write, cannot be damaged by third ones, and is found empty by one look at a
// line that is in the cache.
//
// Threads: one engine at a time, as the contract says.
// Lifetime: closes and unmaps everything; the other sides see their links hang up.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/log_limit.hpp"
#include "base/spare_descriptor.hpp"
#include "base/thread_guard.hpp"
#include "transports/event_queue.hpp"
#include "transports/link_table.hpp"
#include "transports/regions.hpp"
#include "transports/shm/address.hpp"
#include "transports/shm/costs.hpp"
#include "transports/shm/greeting.hpp"
#include "transports/shm/link.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::shm {

class Rail final : public transports::Rail {
public:
    /// Throws Error(system).
    Rail(std::string name, const Bulk& bulk, base::Logger& log);
    ~Rail() override;

    [[nodiscard]] const RailTraits& traits() const noexcept override { return traits_; }
    [[nodiscard]] std::span<const std::byte> address() const noexcept override { return encoded_address_; }
    [[nodiscard]] Reachability reach(std::span<const std::byte> address) const override;

    [[nodiscard]] LinkId connect(std::span<const std::byte> address, std::span<const std::byte> hello) override;
    void accept(LinkId link, std::span<const std::byte> reply) override;
    void refuse(LinkId link, std::span<const std::byte> reply) override;
    void disconnect(LinkId link) override;
    [[nodiscard]] std::string describe(LinkId link) const override;
    [[nodiscard]] bool prefers_get(LinkId link, std::uint64_t bytes) noexcept override;

    [[nodiscard]] base::Result<Region> add_region(std::span<std::byte> memory, Access access) override;
    void drop_region(const Region& region) noexcept override;

    [[nodiscard]] std::size_t post(std::span<const Work> works) noexcept override;
    [[nodiscard]] bool send_short(LinkId link, std::span<std::byte> frame, bool slow) noexcept override;
    [[nodiscard]] std::size_t poll(std::span<Event> events) noexcept override;
    void look_everywhere() noexcept override { next_look_ = polls_; }
    [[nodiscard]] int arm() noexcept override;

private:
    static constexpr std::uint16_t tx_depth = 256;
    static constexpr std::uint32_t max_frame = 64 * 1024;
    static constexpr std::uint64_t max_put = 1U << 30;
    // Links looked at in one poll, in turn; and slots taken of one of them before the others have their turn. An empty look
    // costs 2 ns.
    static constexpr std::size_t links_per_poll = 8;
    static constexpr std::uint32_t slots_per_turn = 16;
    static constexpr std::size_t staging_bytes = 128 * 1024;
    // Small frames with nothing from the other side in between. Where they answer each other, to have the slots ready costs
    // more than it saves: an eighth to a quarter of a half round trip of 8 bytes, with far cores.
    static constexpr std::uint32_t least_burst = 4;
    // Kept for the next frames that come in pieces. More are used where more peers are in the middle of one: those are
    // allocated, so that a burst of many is not paid for ever after.
    static constexpr std::size_t most_spare_frames = 4;
    // Fetched in one turn, which keeps others waiting for some 20 us.
    static constexpr std::uint64_t fetch_step = 256 * 1024;
    // Of what is got in one turn the other side may have a half from this size on: less is copied in the time that two lines
    // take to cross, and a system call.
    static constexpr std::uint64_t least_shared = 20 * 1024;
    // Who sleeps is woken for its half where so much is left: to wake an idle core takes as long as 100 KiB (28 us on a virtual
    // machine), and whoever is awake then stays so for the turns that follow.
    static constexpr std::uint64_t least_waking = 512 * 1024;
    // Sockets are looked at once in so many polls: a system call of 200 ns, for what is rare.
    static constexpr std::uint64_t look_period = 256;
    static constexpr std::uint64_t look_period_setting_up = 16;

    // rail.cpp
    void watch(int descriptor, std::uint64_t tag) noexcept;
    Link& new_link(LinkPhase phase, base::FileDescriptor socket);
    void kill(Link& link, std::string_view cause, std::span<const std::byte> reply = {},
              ErrorCode code = ErrorCode::unreachable);
    [[nodiscard]] bool still_read(const Link& link) const noexcept;
    [[nodiscard]] bool still_written(const Link& link) const noexcept;
    [[nodiscard]] bool still_used(const Link& link) const noexcept { return still_read(link) || still_written(link); }
    void finish(Link& link, std::string_view cause, std::span<const std::byte> reply, ErrorCode code);
    void part(Link& link) noexcept;
    void flush_works(Link& link);

    // joining.cpp: until a link is up
    [[nodiscard]] LinkId refuse_to_connect(std::string_view cause);
    void accept_some();
    void read_greeting(Link& link);
    void greeted(Link& link, const Greeting& greeting, std::span<base::FileDescriptor> descriptors);
    void take_hello(Link& link, const Greeting& greeting, std::span<base::FileDescriptor> descriptors);
    void take_reply(Link& link, const Greeting& greeting, std::span<base::FileDescriptor> descriptors);
    [[nodiscard]] bool send_greeting(Link& link, GreetingKind kind, std::span<const std::byte> body,
                                     std::span<const int> descriptors);
    [[nodiscard]] bool know(Link& link);
    void try_memory(Link& link, const Greeting& greeting, const base::FileDescriptor& board);
    void join_rings(Link& link, std::size_t side);
    void expire_strangers();

    // sending.cpp
    [[nodiscard]] std::size_t write(Link& link, std::span<const Work> works) noexcept;
    [[nodiscard]] bool write_one(Link& link, const Work& work) noexcept;
    [[nodiscard]] bool may_fetch(const Link& link) const noexcept;
    [[nodiscard]] bool fetch_pays(Link& link, std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool try_other_way(Link& link, std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool is_fetched(Link& link, std::uint64_t bytes) const noexcept;
    [[nodiscard]] bool write_small(Link& link, const Work& work, std::size_t bytes) noexcept;
    [[nodiscard]] bool write_fetches(Link& link, const Work& work, std::size_t bytes) noexcept;
    [[nodiscard]] bool write_pieces(Link& link, const Work& work, const Source& source) noexcept;
    void push_pieces(Link& link, Op op, bool notify, PutHead& put, Source& source) noexcept;
    void push_partial(Link& link) noexcept;
    void end_fetched(Link& link) noexcept;
    void done(Link& link, std::uint64_t cookie) noexcept;
    static void wake(Link& link, Sleep what) noexcept;
    [[gnu::noinline]] static bool ring_bell(Link& link) noexcept;
    [[gnu::noinline]] bool send_piece(LinkId id, std::span<std::byte> frame) noexcept;
    [[gnu::noinline]] bool send_as_work(LinkId id, std::span<std::byte> frame) noexcept;

    // receiving.cpp
    [[nodiscard]] bool see_to_rest(Batch& batch) noexcept;
    [[nodiscard]] inline Link& next_active() noexcept;
    [[gnu::noinline]] std::size_t serve_from(Link& first, std::size_t looks, Batch& batch) noexcept;
    [[gnu::noinline]] std::size_t serve_others(std::size_t looks, Batch& batch) noexcept;
    inline void hand_out(Batch& batch) noexcept;
    void take_back() noexcept;
    void keep_spare(std::unique_ptr<std::byte[]> frame) noexcept;
    void look_at_sockets() noexcept;
    void hear(Link& link) noexcept;
    inline void serve(Link& link, Batch& batch) noexcept;
    [[nodiscard]] inline bool take_frames(Link& link, Batch& batch) noexcept;
    [[nodiscard]] inline bool take_frame(const Link& link, const Head& head, Batch& batch) noexcept;
    [[nodiscard]] bool take_whole(const Link& link, const Head& head, Batch& batch) noexcept;
    [[nodiscard]] inline bool take_slot(Link& link, const Head& head, Batch& batch) noexcept;

    // taking.cpp
    [[nodiscard]] bool take_rarer(Link& link, const Head& head, Batch& batch) noexcept;
    [[nodiscard]] bool take_piece(Link& link, const Head& head, Batch& batch) noexcept;
    [[nodiscard]] bool take_put(Link& link, const Head& head) noexcept;
    void time_piece(Link& link, const Head& head, std::uint64_t left) noexcept;
    void time_fetch(Link& link, base::Nanoseconds begun, std::uint64_t bytes) noexcept;
    void tell_way(Link& link) noexcept;
    [[nodiscard]] bool take_fetch(Link& link, const Head& head) noexcept;
    [[nodiscard]] bool fetch(Link& link, std::span<std::byte> to, std::uint64_t address) noexcept;
    [[nodiscard]] bool broken(Link& link) noexcept;
    [[nodiscard]] std::optional<std::span<std::byte>> place_of(Link& link, const PutHead& put) noexcept;
    void placed(Link& link, bool notify, std::uint32_t immediate) noexcept;

    // getting.cpp
    [[nodiscard]] Board& board() noexcept { return *static_cast<Board*>(board_.memory.get()); }
    [[nodiscard]] bool write_get(Link& link, const Work& work) noexcept;
    [[nodiscard]] static bool may_get(const Link& link, const Gets::One& get) noexcept;
    void begin_turn(Link& link) noexcept;
    void get_some(Link& link) noexcept;
    [[nodiscard]] WorkStatus read_shown(Link& link, std::span<std::byte> to, std::uint64_t behind) noexcept;
    [[nodiscard]] static Share::State take_back(Link& link) noexcept;
    [[nodiscard]] bool asks_for_help(const Link& link) const noexcept {
        if (shown_ == 0 || link.phase != LinkPhase::up || link.theirs->share.state() != Share::open) return false;
        return link.theirs->share.word.load(std::memory_order_relaxed) != link.declined;
    }
    void help(Link& link) noexcept;

    // sleeping.cpp
    [[nodiscard]] bool something_came() noexcept;
    void rise() noexcept;

    RailTraits traits_;
    Bulk bulk_;
    base::Logger& log_;
    base::LogLimit said_of_strangers_;
    NodeAddress address_;
    std::vector<std::byte> encoded_address_;
    base::FileDescriptor epoll_;
    base::FileDescriptor listener_;
    base::FileDescriptor bell_;  // others ring it when we sleep
    bool strict_ = false;        // waking.hpp
    const std::uint64_t mark_;   // other_process.hpp

    LinkTable<Link> links_;
    std::vector<Link*> active_;  // up or ending
    std::size_t next_active_ = 0;
    RegionTable regions_;
    Mapping::Made board_;      // of those that may be got from
    std::uint32_t shown_ = 0;  // on it

    EventQueue events_;
    std::unique_ptr<std::byte[]> staging_;  // frames are lent from here
    std::size_t staged_ = 0;
    bool moved_ = false;  // bytes, in this poll
    bool lent_ = false;   // the last poll lent or reported something else, or ended a link
    std::vector<std::unique_ptr<std::byte[]>> lent_frames_;   // those that came in several pieces
    std::vector<std::unique_ptr<std::byte[]>> spare_frames_;  // for the next ones

    std::uint64_t polls_ = 0;
    std::uint64_t next_look_ = 0;
    std::uint32_t setting_up_ = 0;  // links that are not up yet
    std::uint32_t strangers_ = 0;   // of these, accepted and without a hello
    bool armed_ = false;
    base::SpareDescriptor spare_;
    bool told_no_fetch_ = false;
    base::ThreadGuard guard_;
};

}  // namespace railmux::transports::shm

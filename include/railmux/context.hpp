// Context: everything one process owns of railmux: rails, peers, progress. Several in one process work.
//
// Threads: by the `thread_level` parameter: `single` and `serialized` allow one call at a time, `multiple` any.
// Lifetime: outlives its Requests, Messages and MemoryRegions. The destructor delivers what was sent (for at most
// `close.timeout`) and says goodbye to the peers.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <railmux/assessment.hpp>
#include <railmux/config.hpp>
#include <railmux/events.hpp>
#include <railmux/explanation.hpp>
#include <railmux/message.hpp>
#include <railmux/one_sided.hpp>
#include <railmux/progress.hpp>
#include <railmux/request.hpp>
#include <railmux/stats.hpp>

namespace railmux {

class Context {
public:
    /// Opens the selected rails; connects nothing. Inside a job started by `railmux run` it joins that job. Throws Error
    /// (invalid_config, no_rails, bootstrap, wrong_key, system).
    explicit Context(const Config& config = Config::load());
    ~Context();
    Context(Context&&) noexcept;
    Context& operator=(Context&&) noexcept;
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    // --- Peers -------------------------------------------------------------------------------------------------------

    /// This process's rank in its job and the job's size; 0 and 1 outside a job. The size is the number of ranks there ever
    /// were: it grows when processes join, as soon as this one hears of it, and never shrinks.
    [[nodiscard]] std::uint32_t rank() const noexcept;
    [[nodiscard]] std::uint32_t size() const noexcept;

    /// The process with that rank (itself included). Throws Error(invalid_argument) when there is no such rank.
    [[nodiscard]] Peer peer(std::uint32_t rank);
    /// The rank of a peer in the job; nothing if it is none of the job's. Throws Error(invalid_argument).
    [[nodiscard]] std::optional<std::uint32_t> rank(Peer peer) const;

    /// Leaves: delivers what was sent, for at most `close.timeout` (all of it may take four times that), and has everybody
    /// told, in a job also those that it never talked to. What peers have under way with this process, or begin, fails as
    /// peer_left, but for what had arrived; so do large messages that no receive is posted for here. What is still under way
    /// here, receives included, ends as cancelled, and no operation can be begun any more, but to receive what mprobe had
    /// returned: that throws Error(invalid_argument). Throws Error(timed_out) when not everything arrived: it has left all the
    /// same. The second time it does nothing. The destructor does the same, but tells those only that it is connected to, and
    /// receives that still wait end without a word. Not from within callbacks.
    void leave();

    /// Accepts processes that connect() to `where`: "PORT", "ADDRESS:PORT" or "[V6]:PORT"; port 0 picks one. Returns the
    /// port. Throws Error(address_in_use, invalid_argument, permission).
    std::uint16_t listen(std::string_view where);

    /// Waits for the next process that connects to listen(). Nothing when the time is over; without listen() it just waits.
    /// Throws Error(invalid_argument) in a callback.
    [[nodiscard]] std::optional<Peer> accept(std::chrono::nanoseconds timeout);

    /// Makes the process listening at "HOST:PORT" a peer. The limit is `timeout`, not connect.patience. Throws Error
    /// (unreachable, wrong_key, wrong_version, protocol, invalid_argument).
    [[nodiscard]] Peer connect(std::string_view where, std::chrono::nanoseconds timeout = std::chrono::seconds(10));

    /// Connects to these peers ahead of the first message to them, all at the same time, for who would rather wait for that
    /// now. They have to call in meanwhile, as for a message. Returns when each has a link, or is known to be out of reach
    /// (failure() says why), or the time is over: how many have one, this process itself counted. The rails beside the first
    /// come up, and are measured, with the calls that follow. As if a message waited for it, who is not reached within
    /// `connect.patience` counts as lost, whatever the time here: receives from him fail. Throws Error(invalid_argument) for
    /// peers that this context does not know, and in a callback.
    std::size_t warm_up(std::span<const Peer> peers, std::chrono::nanoseconds timeout = std::chrono::seconds(10));

    /// This process's contact address, to be carried to others by other means, and the peer it names over there. add_peer
    /// throws Error(invalid_argument) for bytes that are no such address, (wrong_version) for one of another release.
    [[nodiscard]] std::vector<std::byte> address() const;
    [[nodiscard]] Peer add_peer(std::span<const std::byte> address);

    /// A name for messages to people: "rank 3 (host-b)" or "host-b:4711". This and failure() throw Error(invalid_argument) for
    /// a peer that this context does not know.
    [[nodiscard]] std::string name(Peer peer) const;

    /// Why operations with this peer failed, one line a cause; empty while it is well.
    [[nodiscard]] std::string failure(Peer peer) const;

    // --- Messages ----------------------------------------------------------------------------------------------------

    /// Starts sending. Messages from one process to another match receives in the order they were sent. The buffer
    /// must stay unchanged until the request completes; completion means the buffer may be reused, not that the message
    /// has arrived. A message leaves at once, but those that follow another one closely leave together, at the latest with
    /// the next call that progresses (wait, test, progress, ...); and so does the first of them where the peer has not yet
    /// confirmed a burst of just before, or where the application has been calling in right behind its bursts. Who then
    /// computes after a single isend without such a call may find that it left with the next one; send() never waits. A message
    /// to this process itself is copied within the call that finds its other end, whatever its size; sent before it is received
    /// it is over while it has at most `eager.max` bytes, and what is kept so at most `eager.window`. A gather or scatter list
    /// itself may go when the call returns; only the bytes must stay. All calls that name a peer throw Error(invalid_argument)
    /// for one that this context does not know.
    [[nodiscard]] Request isend(Peer to, Tag tag, ConstBuffer data);
    [[nodiscard]] Request isend(Peer to, Tag tag, ConstBuffer data, Completion done);
    [[nodiscard]] Request isend(Peer to, Tag tag, std::span<const ConstBuffer> gather, Completion done = {});

    /// Starts receiving. `from` may be any_source. A message longer than the buffer is cut and reported as truncated. What
    /// mprobe took out throws Error(invalid_argument) if it was received already.
    [[nodiscard]] Request irecv(Peer from, TagMatch match, MutableBuffer buffer);
    [[nodiscard]] Request irecv(Peer from, TagMatch match, MutableBuffer buffer, Completion done);
    [[nodiscard]] Request irecv(Peer from, TagMatch match, std::span<const MutableBuffer> scatter,
                                Completion done = {});
    [[nodiscard]] Request irecv(Message&& message, MutableBuffer buffer, Completion done = {});

    /// Blocking forms. They throw Error when the operation failed; truncation is reported in the Status.
    void send(Peer to, Tag tag, ConstBuffer data);
    Status recv(Peer from, TagMatch match, MutableBuffer buffer);
    Status recv(Message&& message, MutableBuffer buffer);

    /// Looks for a message that has arrived and not matched; leaves it, or takes it out of matching. (The parameter
    /// `probe` and `railmux probe` are about measuring links, as assess() is.)
    [[nodiscard]] std::optional<Status> probe(Peer from, TagMatch match);
    [[nodiscard]] std::optional<Message> mprobe(Peer from, TagMatch match);

    /// Cancels a receive that has not matched: true, and it completes as cancelled. False when it is too late. Throws
    /// Error(invalid_argument) for a request that is not active or of another context.
    bool cancel(Request& request);

    // --- One-sided (docs/onesided.md) --------------------------------------------------------------------------------

    /// Lets peers reach `memory`. Throws Error(invalid_argument) when it is empty or `rights` are none.
    [[nodiscard]] MemoryRegion register_memory(std::span<std::byte> memory, Rights rights = Rights::read_write);

    /// Starts writing into, or reading from, a peer's memory. What lies outside the region, or is not allowed, fails as
    /// access_denied and touches nothing. Puts and gets are in no order among each other until flushed. Buffers must stay
    /// as they are until the request ends. Small ones of a burst leave together, with the next call that progresses. These
    /// and the atomics throw Error(invalid_argument) for a peer that this context does not know.
    [[nodiscard]] Request iput(Peer to, const RemotePlace& place, ConstBuffer data, const PutOptions& options = {},
                               Completion done = {});
    [[nodiscard]] Request iput(Peer to, const RemotePlace& place, std::span<const ConstBuffer> gather,
                               const PutOptions& options = {}, Completion done = {});
    [[nodiscard]] Request iget(Peer from, const RemotePlace& place, MutableBuffer buffer, Completion done = {});
    [[nodiscard]] Request iget(Peer from, const RemotePlace& place, std::span<const MutableBuffer> scatter,
                               Completion done = {});

    /// Starts an atomic operation; `before` receives what was there. Those of one process on one peer are applied in the
    /// order of the calls, each exactly once. A place that is not aligned fails as invalid_argument.
    template <AtomicWord T>
    [[nodiscard]] Request ifetch_add(Peer at, const RemotePlace& place, std::type_identity_t<T> operand, T& before,
                                     Completion done = {}) {
        return atomic(at, place, {AtomicOp::fetch_add, sizeof(T), bits(operand), 0, &before}, std::move(done));
    }
    template <AtomicWord T>
    [[nodiscard]] Request iswap(Peer at, const RemotePlace& place, std::type_identity_t<T> value, T& before,
                                Completion done = {}) {
        return atomic(at, place, {AtomicOp::swap, sizeof(T), bits(value), 0, &before}, std::move(done));
    }
    /// Stores `desired` if `expected` is there.
    template <AtomicWord T>
    [[nodiscard]] Request icompare_swap(Peer at, const RemotePlace& place, std::type_identity_t<T> expected,
                                        std::type_identity_t<T> desired, T& before, Completion done = {}) {
        return atomic(at, place, {AtomicOp::compare_swap, sizeof(T), bits(desired), bits(expected), &before},
                      std::move(done));
    }

    /// Ends when all one-sided operations towards the peer (or all peers) that were started before are over there: their
    /// bytes are in place. Its status is the first error of puts whose own requests had ended before it was known, and of
    /// operations whose requests were let go of.
    [[nodiscard]] Request iflush(Peer to, Completion done = {});
    [[nodiscard]] Request iflush(Completion done = {});

    /// Ends when `count` notified puts have arrived in the region, ever; cancelled when it is destroyed. Throws
    /// Error(invalid_argument) for a region that is empty or another context's.
    [[nodiscard]] Request inotified(const MemoryRegion& region, std::uint64_t count, Completion done = {});

    /// Blocking forms: the bytes are in place when they return. They throw Error when the operation failed.
    void put(Peer to, const RemotePlace& place, ConstBuffer data);
    void get(Peer from, const RemotePlace& place, MutableBuffer buffer);
    template <AtomicWord T>
    T fetch_add(Peer at, const RemotePlace& place, T operand) {
        T before{};
        refuse_in_callback();
        finish(ifetch_add(at, place, operand, before), "atomic at");
        return before;
    }
    template <AtomicWord T>
    T swap(Peer at, const RemotePlace& place, T value) {
        T before{};
        refuse_in_callback();
        finish(iswap(at, place, value, before), "atomic at");
        return before;
    }
    template <AtomicWord T>
    T compare_swap(Peer at, const RemotePlace& place, T expected, std::type_identity_t<T> desired) {
        T before{};
        refuse_in_callback();
        finish(icompare_swap(at, place, expected, desired, before), "atomic at");
        return before;
    }
    /// Of one-sided operations only; flush(timeout) below waits for messages, too.
    void flush(Peer to);
    void flush();

    // --- Completion --------------------------------------------------------------------------------------------------

    /// Waits for the end of the request, without a time limit, and takes its result. Throws Error(invalid_argument) for a
    /// request that is not active or of another context; and, as every call that waits, in a callback.
    Status wait(Request& request);
    /// Takes the result if there is one; progresses otherwise. Throws as wait does, but may be called in a callback.
    [[nodiscard]] std::optional<Status> test(Request& request);
    /// Waits until one of the active requests ends; its place and result. Throws Error(invalid_argument) if none is active.
    struct Ended {
        std::size_t index;
        Status status;
    };
    Ended wait_any(std::span<Request> requests);
    /// Waits for all and returns the first code that is not ok. Inactive requests are skipped, and their statuses left alone.
    /// Throws Error(invalid_argument) if `statuses` is not empty and shorter than `requests`.
    ErrorCode wait_all(std::span<Request> requests, std::span<Status> statuses = {});

    /// Moves everything on that can be moved on; returns whether anything happened.
    bool progress();
    /// For programs that sleep in a loop of their own (docs/progress.md). The descriptor is the same for the context's life; it
    /// is the context's to read from and to close.
    ///
    /// arm() moves everything on as progress() does. False: something happened, or an operation has ended since the last
    /// arm(): look at what you wait for, and call it again. True: there is nothing to do, and the descriptor turns readable
    /// (POLLIN) when there is: something came, a time limit is over, another thread's call left something to do, or ended
    /// an operation. Then, or after any other call of this thread that made it readable, call arm() again. A call that looks
    /// (test, probe, progress, a wait) takes arm() back: the descriptor is readable at once, so look for results before.
    /// event_fd throws Error(system) when the kernel gives no descriptor. One loop per context.
    [[nodiscard]] int event_fd();
    [[nodiscard]] bool arm();

    /// How this context waits, at first the parameter `progress`. May be changed at any time, but not from within a
    /// Completion (Error(invalid_argument)). ProgressMode::thread starts a thread, and whatever `thread_level` says, the
    /// context takes a lock from then on. Throws Error(system) when there can be no thread.
    [[nodiscard]] ProgressMode progress_mode() const noexcept;
    void set_progress(ProgressMode mode);

    /// Waits until everything sent has arrived at its peer (small messages need not have been received by the application), and
    /// every one-sided operation is over. False when the time is over. What was under way to a peer that was given up, or has
    /// left, is not waited for: on_peer_lost and failure() tell of it.
    bool flush(std::chrono::nanoseconds timeout);

    // --- Models ------------------------------------------------------------------------------------------------------

    /// The model of each link to the peer, as used now; empty before the first message.
    [[nodiscard]] std::vector<LinkModel> models(Peer peer) const;
    /// Measures the links to the peer over the selected rails in full, one after the other, connecting if need be. The
    /// peer must progress meanwhile. Empty if no link is over the selected rails. Throws Error (invalid_argument,
    /// invalid_config; or why there is no link).
    [[nodiscard]] std::vector<LinkAssessment> assess(Peer peer, std::string_view rails = "all",
                                                     const AssessOptions& options = {});
    /// Floods the links to the peer over the selected rails one by one and in pairs, three times, for some 100 ms and at
    /// least 1 MiB each, and remembers which share a bottleneck: those count as one. Other messages to the peer wait
    /// meanwhile. One call at a time. No pairs if there are fewer than two links. Else as assess.
    [[nodiscard]] SharingAssessment assess_sharing(Peer peer, std::string_view rails = "all",
                                                   const SharingOptions& options = {});

    /// How a message of `bytes` to the peer would go now, and why: every link with its cost, wait and predicted delivery.
    /// Sends nothing and changes no decision; connects if need be, for which the peer must progress. Throws Error
    /// (invalid_argument; or why there is no link).
    [[nodiscard]] Explanation explain(Peer peer, std::uint64_t bytes);

    // --- What is lost and comes back (docs/failover.md) --------------------------------------------------------------

    /// Calls back when a link to a peer, or a local interface, is lost; when one that was lost is back, or an interface is new;
    /// when a peer is given up; when one has left; and when one joins the job (docs/running.md), or joins it again. One
    /// callback each: setting another replaces it, an empty one ends it.
    void on_rail_down(RailCallback callback);
    void on_rail_up(RailCallback callback);
    void on_peer_lost(PeerCallback callback);
    void on_peer_left(PeerCallback callback);
    void on_peer_joined(PeerCallback callback);

    // --- What goes on ------------------------------------------------------------------------------------------------

    [[nodiscard]] std::vector<RailInfo> rails() const;
    [[nodiscard]] std::vector<RailTraffic> traffic() const;
    /// The rail-by-peer matrix that RAILMUX_REPORT=1 prints at the end.
    [[nodiscard]] std::string report() const;

private:
    using AtomicOp = messaging::AtomicOp;
    template <AtomicWord T>
    [[nodiscard]] static constexpr std::uint64_t bits(T value) noexcept {
        return static_cast<std::uint64_t>(value);
    }
    [[nodiscard]] Request atomic(Peer at, const RemotePlace& place, const messaging::AtomicCall& what, Completion done);
    /// First of all that a blocking call does: what it had begun would go on in memory that the caller has back.
    void refuse_in_callback() const;
    void finish(Request request, std::string_view what);

    std::unique_ptr<messaging::Engine> engine_;
};

/// The rails a context with this config would see, usable or not, without opening a context.
[[nodiscard]] std::vector<RailInfo> scan_rails(const Config& config);

}  // namespace railmux

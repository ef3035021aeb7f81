// Engine: what stands behind a Context: operations, matching, the rails below, and progress over all of it.
//
//   isend -> Sender -> RailManager::send -> ... -> a rail          (sender.hpp, rail_manager.hpp)
//   a rail -> RailManager::poll -> on_frame -> Receiver -> the operation is over
//   iput, iget, ... -> Origin -> RailManager::send ...       ... on_frame -> Target -> answers -> Origin
//
// Threads: with thread level `multiple` every public member takes the lock; otherwise calls must not overlap. Who progresses,
// waits and sleeps is the business of progress::Progress.
// Lifetime: owned by its Context; outlives its Requests and Messages.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <railmux/assessment.hpp>
#include <railmux/context.hpp>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "base/log.hpp"
#include "messaging/bulk_in.hpp"
#include "messaging/bulk_out.hpp"
#include "messaging/burst.hpp"
#include "messaging/lasting_regions.hpp"
#include "messaging/membership.hpp"
#include "messaging/one_sided_origin.hpp"
#include "messaging/one_sided_target.hpp"
#include "messaging/operation.hpp"
#include "messaging/receiver.hpp"
#include "messaging/sender.hpp"
#include "progress/progress.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

using rails::Transports;

class Engine final : private rails::Upper, private progress::Subject {
public:
    /// With the transports built in and the real clock.
    explicit Engine(const Config& config);
    static constexpr base::Nanoseconds never_ends = progress::Progress::never;
    /// With other transports and another clock, for tests. The transports were made with `services`.
    struct Parts {
        Transports transports;
        base::Clock clock = &base::now_ns;
    };
    Engine(const Config& config, Parts parts);
    ~Engine();

    // --- Peers (peers.cpp) -------------------------------------------------------------------------------------------
    [[nodiscard]] std::uint32_t rank() const noexcept { return membership_.rank(); }
    [[nodiscard]] std::uint32_t size() const noexcept { return membership_.size(); }
    [[nodiscard]] Peer peer(std::uint32_t rank);
    [[nodiscard]] std::optional<std::uint32_t> rank(Peer peer);
    void leave();
    std::uint16_t listen(std::string_view where);
    [[nodiscard]] std::optional<Peer> accept(std::chrono::nanoseconds timeout);
    [[nodiscard]] Peer connect(std::string_view where, std::chrono::nanoseconds timeout);
    std::size_t warm_up(std::span<const Peer> peers, std::chrono::nanoseconds timeout);
    [[nodiscard]] std::vector<std::byte> address() const;
    [[nodiscard]] Peer add_peer(std::span<const std::byte> address);
    [[nodiscard]] std::string name(Peer peer);
    [[nodiscard]] std::string failure(Peer peer);
    /// What failed with this peer, followed by what is known of the causes; and what to do about it.
    [[nodiscard]] Error error_with(Peer peer, ErrorCode code, std::string what);

    // --- Messages (engine.cpp) ---------------------------------------------------------------------------------------
    [[nodiscard]] Request isend(Peer to, Tag tag, std::span<const ConstBuffer> gather, Completion&& done);
    [[nodiscard]] Request isend(Peer to, Tag tag, ConstBuffer data);
    /// Returns when the buffer is the application's again. Throws Error.
    void send(Peer to, Tag tag, ConstBuffer data);
    [[nodiscard]] Request irecv(Peer from, TagMatch match, MutableBuffer buffer);
    [[nodiscard]] Request irecv(Peer from, TagMatch match, std::span<const MutableBuffer> scatter, Completion&& done);
    [[nodiscard]] Request irecv(Message& message, MutableBuffer buffer, Completion&& done);
    [[nodiscard]] std::optional<Status> probe(Peer from, TagMatch match);
    [[nodiscard]] std::optional<Message> mprobe(Peer from, TagMatch match);
    bool cancel(Request& request);
    void detach(std::uint32_t slot) noexcept;
    void drop(void* message) noexcept;

    // --- One-sided (one_sided.cpp) -----------------------------------------------------------------------------------
    [[nodiscard]] MemoryRegion register_memory(std::span<std::byte> memory, Rights rights);
    [[nodiscard]] RemoteKey region_key(std::uint32_t region);
    [[nodiscard]] std::span<std::byte> region_memory(std::uint32_t region);
    [[nodiscard]] std::uint64_t region_notified(std::uint32_t region);
    void withdraw(std::uint32_t region) noexcept;
    [[nodiscard]] Request inotified(const MemoryRegion& region, std::uint64_t count, Completion&& done);
    [[nodiscard]] Request iput(Peer to, const RemotePlace& place, std::span<const ConstBuffer> gather,
                               const PutOptions& options, Completion&& done);
    [[nodiscard]] Request iget(Peer from, const RemotePlace& place, std::span<const MutableBuffer> scatter,
                               Completion&& done);
    [[nodiscard]] Request atomic(Peer at, const RemotePlace& place, const AtomicCall& call, Completion&& done);
    [[nodiscard]] Request iflush(Peer to, Completion&& done);
    [[nodiscard]] Request iflush(Completion&& done);

    // --- Completion (waiting.cpp) ------------------------------------------------------------------------------------
    Status wait(Request& request);
    /// Throws Error(invalid_argument) in a callback, before anything is begun that would be waited for.
    void refuse_wait_in_callback();
    /// What a blocking call throws, of whatever it did.
    void throw_if_failed(const Status& status, std::string_view what);
    [[nodiscard]] std::optional<Status> test(Request& request);
    Context::Ended wait_any(std::span<Request> requests);
    ErrorCode wait_all(std::span<Request> requests, std::span<Status> statuses);
    bool progress();
    bool flush(std::chrono::nanoseconds timeout);
    [[nodiscard]] int event_fd() { return progress_.descriptor(); }
    [[nodiscard]] bool arm() { return progress_.arm(); }
    [[nodiscard]] ProgressMode progress_mode() const noexcept { return progress_.mode(); }
    void set_progress(ProgressMode mode);

    // --- Models (assess.cpp) -----------------------------------------------------------------------------------------
    [[nodiscard]] std::vector<LinkModel> models(Peer peer);
    [[nodiscard]] std::vector<LinkAssessment> assess(Peer peer, std::string_view rails, const AssessOptions& options);
    [[nodiscard]] SharingAssessment assess_sharing(Peer peer, std::string_view rails, const SharingOptions& options);

    [[nodiscard]] Explanation explain(Peer peer, std::uint64_t bytes);
    /// Of its rails, for tests (RailManager::balanced).
    [[nodiscard]] bool balanced();

    // --- What is lost and comes back (news.cpp) ----------------------------------------------------------------------
    void on_rail_down(RailCallback&& callback);
    void on_rail_up(RailCallback&& callback);
    void on_peer_lost(PeerCallback&& callback);
    void on_peer_left(PeerCallback&& callback);
    void on_peer_joined(PeerCallback&& callback);

    // --- What goes on (report.cpp) -----------------------------------------------------------------------------------
    [[nodiscard]] std::vector<RailInfo> rails();
    [[nodiscard]] std::vector<RailTraffic> traffic();
    [[nodiscard]] std::string report();

private:
    // Upper
    bool on_frame(std::uint32_t peer, const rails::FrameHeader& header, std::span<const std::byte> body) override;
    std::span<const std::byte> closed_by(std::uint32_t peer, std::span<const std::byte> fin) noexcept override {
        return bulk_in_.closed_by(peer, fin);
    }
    void on_released(std::uint32_t peer, const rails::Frame& frame) override;
    void on_sendable(std::uint32_t peer) override;
    rails::Frame* next_bulk(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                            std::uint64_t most) override;
    std::uint64_t bulk_left(std::uint32_t peer, std::uint8_t remote_rail) override;
    rails::Frame* next_get(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                           std::uint64_t most) override;
    void on_got(std::uint32_t peer, const rails::Frame& frame, transports::WorkStatus status) override {
        bulk_in_.on_got(peer, frame, status, now_);
    }
    void on_put_denied(std::uint64_t token) override { bulk_out_.denied(token); }
    void on_link_lost(std::uint32_t peer, std::uint32_t rail) override;
    void on_peer_gone(std::uint32_t peer, ErrorCode code) override;
    void on_peer_left(std::uint32_t peer) override;
    void on_rail_news(const rails::RailNews& news) override;
    void on_address_wanted(std::uint32_t peer) override;
    void on_address_changed() override;

    // Subject (waiting.cpp)
    friend class progress::Progress;
    bool look(bool exact) override { return pass(exact ? now() : now_); }
    [[nodiscard]] bool timing() const noexcept override { return rails_.timing(now_); }
    [[nodiscard]] base::Nanoseconds now() const noexcept override { return clock_(); }
    [[nodiscard]] base::Nanoseconds last_now() const noexcept override { return now_; }
    [[nodiscard]] base::Nanoseconds arm(progress::Sleeper& set) override;
    void slept() override { rails_.watched_until(now_ = now()); }
    [[nodiscard]] bool wants_look(base::Nanoseconds before) noexcept override;
    [[nodiscard]] std::uint64_t ended() const noexcept override {
        return operations_.ended() + knocks_ + receiver_.unexpected() + target_.notified();
    }
    [[nodiscard]] base::Nanoseconds answer_time() override { return rails_.answer_time(); }
    [[nodiscard]] base::Nanoseconds unseen_time() const noexcept override;

    struct Lock : progress::Progress::Lock {
        RAILMUX_IN_LINE explicit Lock(const Engine& engine) : progress::Progress::Lock(engine.progress_) {}
        RAILMUX_IN_LINE ~Lock() = default;
        Lock(const Lock&) = delete;
        Lock& operator=(const Lock&) = delete;
    };

    struct Above;  // what a pass hands frames to (waiting.cpp)

    struct Told {
        RailCallback rail_down;
        RailCallback rail_up;
        PeerCallback peer_lost;
        PeerCallback peer_left;
        PeerCallback peer_joined;
    };
    struct PeerNews {
        PeerCallback Told::*callback;
        PeerEvent event;
    };
    void note_loss(std::uint32_t peer, ErrorCode code);
    void note(PeerCallback Told::*callback, PeerEvent&& event);
    void tell_news();
    [[nodiscard]] bool any_news() const noexcept { return !rail_news_.empty() || !peer_news_.empty(); }
    [[nodiscard]] std::string report_models();
    [[nodiscard]] std::string report_predictions();
    [[nodiscard]] std::string report_bursts(std::uint32_t peer);
    [[nodiscard]] std::string report_probing();
    [[nodiscard]] bool linked_or_hopeless(std::uint32_t peer);
    void connect_links(std::uint32_t peer, std::string_view what);
    [[nodiscard]] std::vector<std::uint32_t> links_to_assess(Peer peer, std::string_view rails);
    [[nodiscard]] double flood(std::span<const std::uint32_t> links, const std::string& names,
                               const SharingOptions& options);
    [[nodiscard]] double flood_pair(const std::array<std::uint32_t, 2>& links, const std::string& names,
                                    const std::array<double, 2>& alone, const SharingOptions& options);
    [[nodiscard]] Operation& operation_of(const Request& request) {
        if (request.engine_ != this) [[unlikely]]
            refuse_request();
        return operations_.at(request.slot_);
    }
    [[noreturn]] static void refuse_request();
    [[nodiscard]] std::uint32_t known_peer(Peer peer) {
        if (peer.index() >= rails_.peers().size()) [[unlikely]]  // which no invalid one is below
            refuse_peer();
        return peer.index();
    }
    [[noreturn]] static void refuse_peer();
    [[nodiscard]] inline Request begin_receive(Operation& operation, std::uint32_t peer, TagMatch match);
    void refuse_if_left() const {
        if (left_) [[unlikely]]
            refuse_as_left();
    }
    [[noreturn]] static void refuse_as_left();
    /// The peer of an operation that is begun; and whom a receive is from.
    [[nodiscard]] std::uint32_t partner(Peer peer) {
        refuse_if_left();
        return known_peer(peer);
    }
    [[nodiscard]] std::uint32_t origin(Peer from) {
        refuse_if_left();
        return from.valid() ? known_peer(from) : anybody;
    }
    [[nodiscard]] ErrorCode gone_for_good(std::uint32_t peer);
    static void add_source(Operation& operation, std::span<const ConstBuffer> gather);
    [[nodiscard]] Operation& new_send(std::uint32_t peer, Tag tag, std::span<const ConstBuffer> gather,
                                      Completion&& done);
    [[nodiscard]] Request begin_send(std::uint32_t peer, Tag tag, std::span<const ConstBuffer> gather, bool last,
                                     Completion&& done);
    void send_and_wait(Peer to, Tag tag, ConstBuffer data);
    [[nodiscard]] inline Request isend_own(Tag tag, ConstBuffer data);
    void send_own(Peer self, Tag tag, ConstBuffer data);
    [[nodiscard]] Request begin_own(Tag tag, std::span<const ConstBuffer> gather, Completion&& done);
    [[nodiscard]] Request start(Access& access, const Operation& operation);
    [[nodiscard]] bool busy(std::uint32_t peer) const noexcept;
    /// Whether what is sent to the peer next, with so many bytes, is not to wait for more.
    [[nodiscard]] RAILMUX_IN_LINE bool ends_burst(std::uint32_t peer, std::size_t bytes) noexcept {
        return burst_.add(bytes, now_, progress_.alone(),
                          [this, peer] { return !sender_.any_bundle() && rails_.answered(peer); });
    }
    void flush_burst();
    /// A message, before which there had been so many `reckonings`.
    RAILMUX_IN_LINE void handed_over(bool last, std::uint32_t reckonings) {
        if (last) {
            flush_burst();
        } else if (rails_.reckonings() != reckonings) [[unlikely]] {
            burst_.put_away(now());
        }
    }
    /// Where that `took_calls`, it is not now any more. What rails take at once (post_at_once) is soon done.
    void burst_left(bool took_calls) noexcept { burst_.left(took_calls ? now() : now_); }
    /// Whoever asks for results has no more to add to the burst.
    RAILMUX_IN_LINE void end_burst() {
        if (burst_.waiting()) [[unlikely]]
            close_burst();
    }
    void close_burst();
    /// What a message may wait for that is to be sent now, or not (`last`). Where others look, too, or somebody sleeps, he
    /// would have to be woken for what waits.
    [[nodiscard]] RAILMUX_IN_LINE Sender::Leaving leaving(bool last) const noexcept {
        if (last) return Sender::Leaving::at_once;
        return burst_.prompt() && progress_.alone() ? Sender::Leaving::bundled : Sender::Leaving::with_others;
    }
    bool pass(base::Nanoseconds now);
    /// Who finds all over without a look at the rails is to look now and then all the same. `now_` is of the last call that
    /// sent or looked.
    [[nodiscard]] RAILMUX_IN_LINE bool look_due() const noexcept {
        return unlooked_bytes_ >= bytes_per_look || now_ - looked_ >= longest_unlooked;
    }
    RAILMUX_IN_LINE void look_if_due() {
        if (look_due()) [[unlikely]]
            pass(now());
    }
    bool poll_membership(base::Nanoseconds now);
    void take_address(const Membership::News& item, base::Nanoseconds now);
    void take_end(const Membership::News& item, base::Nanoseconds now);
    bool call_back();
    template <typename Over, typename... Seen>
    bool progress_until(Over over, base::Nanoseconds deadline, Seen... seen) {
        refuse_in_callback("a wait");
        end_burst();
        return progress_.until(*this, std::move(over), deadline, std::move(seen)...);
    }
    struct CallingBack {
        explicit CallingBack(std::thread::id& id) : who(id) { who = std::this_thread::get_id(); }
        ~CallingBack() { who = {}; }
        CallingBack(const CallingBack&) = delete;
        CallingBack& operator=(const CallingBack&) = delete;
        std::thread::id& who;
    };
    /// Calls the application's code as a callback: it must not wait. False, and nothing is called, while another one runs.
    template <typename Call>
    bool call_outside(Call call) {
        if (calling_back_ != std::thread::id{}) return false;
        const CallingBack calling(calling_back_);
        progress_.outside(std::move(call));
        return true;
    }
    void refuse_in_callback(std::string_view what) const {
        if (calling_back_ != std::thread::id{}) refuse_if_called_back(what);
    }
    void refuse_if_called_back(std::string_view what) const;
    inline Status wait_locked(Request& request);
    void look_for(Operation& operation);
    [[nodiscard]] RAILMUX_IN_LINE Status take(Request& request) { return take(request, operations_.at(request.slot_)); }
    [[nodiscard]] RAILMUX_IN_LINE Status take(Request& request, Operation& operation) {
        const auto status = operation.status;
        operations_.free(operation);
        request.engine_ = nullptr;
        return status;
    }
    [[nodiscard]] bool everything_sent();
    void await_readers(std::uint32_t region) noexcept;
    [[nodiscard]] std::vector<std::string> say_farewell();
    void call_back_for_all();
    [[nodiscard]] base::Nanoseconds close_limit() const;
    // Sends that are over at once need no look at the rails, but what they do to the rails must be heard of now and then; and
    // what peers send meanwhile, if only acknowledgements, is not to fill what lies between.
    static constexpr std::size_t bytes_per_look = 64 * 1024;
    static constexpr std::size_t message_per_look = 64;  // of these, for each message
    static constexpr base::Nanoseconds longest_unlooked = base::millisecond;
    static constexpr base::Nanoseconds between_reports = 50 * base::millisecond;  // of how far a measurement is
    static constexpr std::string_view left_text = "it has left\n";

    Config config_;
    base::Logger log_;
    base::Clock clock_;

    Membership membership_;
    BulkIn::Bounces bounces_;
    rails::RailSet rail_set_;
    std::unique_ptr<sched::Policy> policy_;
    Operations operations_;
    rails::RailManager rails_;
    LastingRegions lasting_;
    BulkOut bulk_out_;
    BulkIn bulk_in_;
    Sender sender_;
    Receiver receiver_;
    Origin origin_;
    Target target_;
    std::vector<std::uint32_t> knocked_;  // peers for accept()
    std::uint64_t knocks_ = 0;            // so far
    std::uint32_t own_peer_ = 0;          // this process itself
    Told told_;
    std::vector<rails::RailNews> rail_news_;  // to be told with the next pass, as far as anybody wants to know
    std::vector<PeerNews> peer_news_;
    bool left_ = false;  // this process has, or does

    base::Nanoseconds now_ = 0;       // of the pass under way, for what the rails call back
    std::size_t unlooked_bytes_ = 0;  // sent since the last pass, which was
    base::Nanoseconds looked_ = 0;    // at that time
    Burst burst_;                     // what waits in outboxes
    base::Nanoseconds next_membership_ = 0;

    std::vector<int> descriptors_;       // by rail, once armed
    bool membership_unwatched_ = false;  // it has other descriptors than when somebody went to sleep last
    std::thread::id calling_back_;       // who is in the application's callbacks

    mutable progress::Progress progress_;  // last: its helper uses all of the above
};

}  // namespace railmux::messaging

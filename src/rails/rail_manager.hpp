// RailManager: peers, their sessions, and the links under them. What is above it sends frames to peers and is handed frames
// of peers, each exactly once; which links there are, and what happened to them, stays down here.
//
//   send(peer, frame) -> session numbers it -> policy chooses a link -> outbox of the link -> post to the rail
//   poll the rail -> header checked -> session drops duplicates, restores order -> Upper::on_frame
//
// Threads: one engine at a time.
// Lifetime: owns rails, links, sessions and frames; refers to policy, log and the layer above.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <railmux/explanation.hpp>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "model/watch.hpp"
#include "rails/ack_route.hpp"
#include "rails/assessor.hpp"
#include "rails/bulk_plan.hpp"
#include "rails/connector.hpp"
#include "rails/eager_switch.hpp"
#include "rails/feeder.hpp"
#include "rails/flooder.hpp"
#include "rails/frame_pool.hpp"
#include "rails/groups.hpp"
#include "rails/heard_acks.hpp"
#include "rails/keeping_up.hpp"
#include "rails/lead_finder.hpp"
#include "rails/leaving.hpp"
#include "rails/ledger.hpp"
#include "rails/link.hpp"
#include "rails/node_table.hpp"
#include "rails/outboxes.hpp"
#include "rails/owed_acks.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"
#include "rails/recovery.hpp"
#include "rails/regions.hpp"
#include "rails/rounds.hpp"
#include "rails/settling.hpp"
#include "rails/survey.hpp"
#include "rails/tracer.hpp"
#include "rails/upper.hpp"
#include "rails/watcher.hpp"
#include "sched/policy.hpp"

namespace railmux::rails {

class RailManager final : private ConnectorHost,
                          private AssessorHost,
                          private LeavingHost,
                          private FeederHost,
                          private OutboxesHost {
public:
    struct Options {
        base::Clock clock = &base::now_ns;  // the one that calls read which pass `now`
        Connector::Options connector;
        Assessor::Options assessor;
        Tracer::Options tracer;
        Recovery::Options recovery;
        EagerSwitch::Options eager;
        Watcher::Options watching;
        base::Nanoseconds patience = 10 * base::second;       // without a first link, before operations fail
        base::Nanoseconds lost_patience = 30 * base::second;  // ... where there was one
        OwedAcks::Options acks;
        std::uint64_t fragment = 1024 * 1024;  // largest piece of bulk
        bool share_node = true;                // see the load of other processes of this node, and show ours
    };

    RailManager(Options options, RailSet& rails, sched::Policy& policy, Upper& upper, base::Logger& log);
    ~RailManager();

    // --- Peers -------------------------------------------------------------------------------------------------------

    [[nodiscard]] PeerTable& peers() noexcept { return peers_; }
    /// What this process tells others about itself.
    [[nodiscard]] ProcessAddress own_address(std::string host, std::uint32_t pid) const;
    /// Tells the peers that there is a session with where this process is now.
    void tell_address(const ProcessAddress& own, base::Nanoseconds now);
    /// Who gave us an address: somebody who has it from the process, or the job, which tells of a rank's processes one after
    /// the other, and of each one's end (`ended`) before the next: but the processes themselves may be quicker.
    enum class Source : std::uint8_t { carried, job };
    /// Makes the process with that address a peer, or completes what is known of it.
    std::uint32_t learn(const ProcessAddress& address, Source source = Source::carried);

    /// Operations wait until more can be sent to the peer: on_sendable follows as soon as that may be so.
    void await(std::uint32_t peer) noexcept;
    /// Brings up links to the peer if there are none; on_sendable or on_peer_gone follows.
    void want(std::uint32_t peer, base::Nanoseconds now);
    /// Fails what waits for a link to the peer: it is known why there can be none.
    void forgo(std::uint32_t peer, const Error& cause, base::Nanoseconds now);
    /// Ends the session with the peer as lost.
    void give_up(std::uint32_t peer, std::string_view cause, base::Nanoseconds now);
    /// Somebody who must know says that the process `instance` of this peer has ended: in good order (peer_left), or not
    /// (peer_lost). Links that are still up bring what it had sent; without any nobody looks for it.
    void ended(std::uint32_t peer, std::uint64_t instance, ErrorCode how, base::Nanoseconds now);
    /// Whatever came before `now` would have woken the caller, who slept until then.
    void watched_until(base::Nanoseconds now) noexcept;
    /// The conversation with the peer, if a message may go to it now; else nullptr.
    [[nodiscard]] Conversation* sendable(std::uint32_t peer) const noexcept {
        const auto& known = peers_[peer];
        auto* talk = known.talk.get();
        return talk != nullptr && !known.left && talk->takes_messages() ? talk : nullptr;
    }
    [[nodiscard]] bool connected(std::uint32_t peer) const noexcept;

    // --- Frames ------------------------------------------------------------------------------------------------------

    [[nodiscard]] FramePool& pool() noexcept { return pool_; }
    /// Takes the frame over (type, flags, aux, bytes and payload filled in). It leaves with the next flush.
    void send(std::uint32_t peer, Frame* frame, base::Nanoseconds now) override;  // of LeavingHost, too
    /// The same of a message, in its sendable() conversation (way_down.hpp).
    inline void send(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now);
    /// The layer above has bulk for this peer: links call next_bulk as they have room.
    void offer_bulk(std::uint32_t peer);
    /// For the trace: a large message of the peer, whose pieces carry `token`, is among that bulk from now on.
    void note_bulk(std::uint32_t peer, std::uint64_t token, std::uint64_t bytes, base::Nanoseconds now) noexcept {
        if (tracer_ != nullptr) tracer_->offered(peer, token, bytes, now);
    }
    /// The peer has got so much of what was offered to it over that rail.
    void note_got(std::uint32_t peer, std::uint32_t rail, std::uint64_t bytes) noexcept;
    /// The layer above has bulk to get from this peer: links call next_get as they have room.
    void offer_gets(std::uint32_t peer, base::Nanoseconds now) { feeder_.offer_gets(peer, now); }
    [[nodiscard]] const transports::RailTraits& traits(std::uint32_t rail) const noexcept {
        return rails_[rail].traits();
    }
    [[nodiscard]] Regions& regions() noexcept { return regions_; }
    [[nodiscard]] BulkPlan& plan() noexcept { return plan_; }
    /// Posts what waits in outboxes, and does what was put off until now. False: nothing was waiting there, nor has left by a
    /// call of its own since this was called last (way_down.hpp, as the next two).
    inline bool flush(base::Nanoseconds now);
    /// Only the former; but of much that is on the rails then others are to know, whenever the next poll is.
    inline bool post_lined_up(base::Nanoseconds now);

    /// Credit: `units` of the peer's data have been taken by the application.
    inline void consumed(std::uint32_t peer, std::uint32_t units, base::Nanoseconds now);

    /// Whether decisions are told to anybody: for tests.
    [[nodiscard]] bool traced() const noexcept { return tracer_ != nullptr; }
    /// Whether what is kept of rails, links and large messages agrees: for assertions and tests.
    [[nodiscard]] bool balanced() const { return ledger_.balanced() && plan_.balanced(); }
    /// What would be done with `bytes` to the peer, which is connected: a frame of that length, or a payload to be divided.
    [[nodiscard]] Explanation explain(std::uint32_t peer, std::uint64_t bytes, bool divisible, base::Nanoseconds now);

    // --- Models ------------------------------------------------------------------------------------------------------

    [[nodiscard]] Survey& survey() noexcept { return survey_; }
    [[nodiscard]] Groups& groups() noexcept { return groups_; }

    // --- Progress ----------------------------------------------------------------------------------------------------

    /// Handles what the rails have, acknowledges, connects, expires. True if anything happened.
    bool poll(base::Nanoseconds now);
    /// The same for the layer above by a type of its own, whose on_frame() is not virtual (way_up.hpp).
    template <typename Above>
    bool poll(Above& above, base::Nanoseconds now);
    /// When poll wants to be called even if no rail has anything.
    [[nodiscard]] base::Nanoseconds next_deadline() const noexcept { return std::min(next_deadline_, due_); }
    /// Whoever called may sleep now: does what was put off until it would be worth it.
    void rest();
    /// Whether poll is wanted before that time, which no descriptor of a rail tells who has armed it.
    [[nodiscard]] bool wants_look(base::Nanoseconds before) noexcept;
    /// How long a small message and its answer take over the best link, as known now; 0 without a link.
    [[nodiscard]] base::Nanoseconds answer_time() noexcept;
    /// Whether incoming frames are being timed: then `now` should be exact.
    [[nodiscard]] bool timing(base::Nanoseconds now) const noexcept { return assessor_.timing(now); }
    /// Changes when a call takes microseconds longer than others, because what is on the rails is reckoned anew.
    [[nodiscard]] std::uint32_t reckonings() const noexcept { return ledger_.reckonings(); }
    /// Whether everything sent to this peer (or all) has been acknowledged.
    [[nodiscard]] bool idle(std::uint32_t peer) const noexcept;
    /// Whether everything that was ever handed over for this peer is known to have arrived; nothing was, without a session.
    [[nodiscard]] bool answered(std::uint32_t peer) const noexcept {
        const auto* talk = peers_[peer].talk.get();
        return talk == nullptr || talk->session.all_heard();
    }
    [[nodiscard]] Leaving& leaving() noexcept { return leaving_; }

private:
    // ConnectorHost
    void link_proven(Link& link, base::Nanoseconds now) override;
    void link_dropped(Link& link, base::Nanoseconds now) override;
    void attempt_over(std::uint32_t peer, base::Nanoseconds now) override;
    void pair_failed(const Link& link, std::string_view cause, bool hopeless, base::Nanoseconds now) override;
    void follow_session(std::uint32_t peer, std::uint64_t instance, std::uint8_t epoch) override;
    void replacing_over(base::Nanoseconds now) override;
    [[nodiscard]] bool is_lost(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) const override;
    [[nodiscard]] bool resting(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                               base::Nanoseconds now) const override;
    void peer_leaves(std::uint32_t peer, base::Nanoseconds now) override;

    // AssessorHost
    void post_now(Link& link, Frame* frame) override { outboxes_.post_now(link, frame, now_); }  // of LeavingHost, too
    void model_changed(Link& link) override;
    [[nodiscard]] bool carries(std::uint32_t rail) const noexcept override { return ledger_.pace(rail).backlog() > 0; }
    [[nodiscard]] base::Nanoseconds busy() const noexcept override { return ledger_.busy(); }

    // LinkHost, and what LeavingHost has besides
    void enqueue(Link& link, Frame* frame, base::Nanoseconds now) override { outboxes_.enqueue(link, frame, now); }
    void break_off(Link& link, std::string_view cause, base::Nanoseconds now) override;
    void let_nobody_in() override;
    [[nodiscard]] bool look_at(std::uint32_t rail) override;
    void end_session(std::uint32_t peer, std::uint8_t next_epoch, ErrorCode code) override;

    // FeederHost
    void number(Conversation& talk, Frame& frame, base::Nanoseconds now) override;
    void line_up(Link& link, Frame* frame, base::Nanoseconds now) override { outboxes_.line_up(link, frame, now); }

    // OutboxesHost
    void unsettle(Link& link, base::Nanoseconds now) override { schedule(watcher_.unsettle(link, now)); }
    void control_gone(Link& link, const Frame& frame) override;
    void released(std::uint32_t peer, const Frame& frame) override { upper_.on_released(peer, frame); }

    // The way up (way_up.hpp)
    template <typename Above>
    [[nodiscard]] Found look_round(Above& above, bool exact, base::Nanoseconds now);
    template <typename Above>
    Found poll_rail(Above& above, std::uint32_t rail, bool exact, base::Nanoseconds now);
    inline bool take_note(std::uint32_t rail, std::span<const transports::Event> events) noexcept;
    template <typename Above>
    void handle(Above& above, std::uint32_t rail, const transports::Event& event, base::Nanoseconds now);
    template <typename Above>
    void on_received(Above& above, Link& link, const transports::Event& event, base::Nanoseconds now);
    template <typename Above>
    [[nodiscard]] bool take_next(Above& above, Link& link, std::span<const std::byte> bytes, base::Nanoseconds now);
    template <typename Above>
    void take_other(Above& above, Link& link, std::span<const std::byte> bytes, base::Nanoseconds now);
    template <typename Above>
    [[nodiscard]] bool take_in(Above& above, Link& link, Known& known, const FrameHeader& header,
                               std::span<const std::byte> body, base::Nanoseconds now);
    template <typename Above>
    [[nodiscard]] bool hand_up(Above& above, std::uint32_t peer, Known& known, const FrameHeader& header,
                               std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] inline bool hear_ack(Link& link, Conversation& talk, const FrameHeader& header,
                                       base::Nanoseconds now);

    // Events (events.cpp)
    void on_change(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now);
    void on_done(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now);
    void deny_puts(std::uint32_t peer, Frame& frame);
    void on_link_down(Link& link, const transports::Event& event, base::Nanoseconds now);
    void list_rails();
    void look_everywhere() noexcept;
    [[nodiscard]] bool may_stand_by(std::uint32_t rail);
    void keep_time(base::Nanoseconds now);

    // Receiving (receiving.cpp)
    void on_control(Link& link, const FrameHeader& header, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool on_settled(Link& link, const FrameHeader& header, std::span<const std::byte> body,
                                  base::Nanoseconds now);
    [[nodiscard]] bool hand_up_own(std::uint32_t peer, Known& known, const FrameHeader& header,
                                   std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] std::optional<std::span<const std::byte>> opened(Link& link, std::span<const std::byte> bytes,
                                                                   base::Nanoseconds now);
    void corrupted(Link& link, std::string_view what, base::Nanoseconds now);
    [[nodiscard]] bool assess(Link& link, FrameType type, std::span<const std::byte> body, base::Nanoseconds now);

    // Routing, to a link, and what is seen to later (routing.cpp, catching_up.cpp)
    void enter(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now);
    [[nodiscard]] bool follow_heavy(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now);
    void enter_by_choice(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now);
    void enter_waiting(std::uint32_t peer, Conversation& talk, base::Nanoseconds now);
    void route(std::uint32_t peer, Conversation& talk, Frame* frame, base::Nanoseconds now);
    void route_again(std::uint32_t peer, Conversation& talk, Frame& frame, base::Nanoseconds now);
    void hand_over(Link& link, Conversation& talk, Frame* frame, base::Nanoseconds now);
    void hand_over_timed(Link& link, Conversation& talk, Frame* frame, base::Nanoseconds now);
    inline void put_off(Link& link, Conversation& talk, Frame& frame, base::Nanoseconds now);
    /// Explanations are of decisions: nothing follows another.
    [[nodiscard]] bool explaining() const noexcept { return tracer_ != nullptr && tracer_->explains(); }
    [[nodiscard]] Link* only_link(const Conversation& talk, base::Nanoseconds now) noexcept;
    [[nodiscard]] std::size_t favoured(const Conversation& talk, const Frame& frame, base::Nanoseconds now) noexcept;
    void note_choice(Conversation& talk, const Frame& frame, std::size_t choice, base::Nanoseconds now);
    bool catch_up();
    void catch_up_and_post();
    void reroute(std::uint32_t peer, std::uint32_t lost_slot, base::Nanoseconds now);

    // Acknowledging (acknowledging.cpp; owe_ack in way_down.hpp)
    void send_ack(Conversation& talk, base::Nanoseconds now);
    void tell_time(Link& link, Conversation& talk, std::uint32_t seq, base::Nanoseconds now);
    void on_ack(Link& link, Conversation& talk, const FrameHeader& header, std::span<const std::byte> body,
                base::Nanoseconds now);
    [[nodiscard]] bool take_acks(const Link& link, const FrameHeader& header, std::span<const std::byte> sack,
                                 bool credit, base::Nanoseconds now);
    [[nodiscard]] bool take_heard();
    void want_heard(const Link& link, const Conversation& talk, const FrameHeader& header, base::Nanoseconds now);
    [[nodiscard]] bool still_traced() noexcept;
    inline void owe_ack(std::uint32_t peer, Conversation& talk, base::Nanoseconds now);
    void hurry_ack(std::uint32_t peer, Conversation& talk) {
        owed_acks_.hurry(peer, talk.owed);
        schedule(0);
    }
    void run_acks(base::Nanoseconds now);
    void schedule(base::Nanoseconds when) noexcept { next_deadline_ = std::min(next_deadline_, when); }

    // What is lost and comes back (recovering.cpp)
    void lose(const Link& link, std::string_view cause, base::Nanoseconds now);
    void tell_lost(const Link& link, base::Nanoseconds now);
    [[nodiscard]] bool moved(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    [[nodiscard]] bool lost_there(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now);
    void note_back(const Link& link, base::Nanoseconds now);
    void recover(base::Nanoseconds now);
    void replace_lost(base::Nanoseconds now);
    [[nodiscard]] std::string losses(std::uint32_t peer, base::Nanoseconds now) const;
    void on_rail_down(std::uint32_t rail, std::string_view cause, base::Nanoseconds now);
    void on_rail_up(std::uint32_t rail, base::Nanoseconds now);
    void take_new_rails(base::Nanoseconds now);
    void connect_all_anew(base::Nanoseconds now);

    // Peers (rail_manager.cpp, ending.cpp)
    void share_with_node(std::uint32_t rail);
    Conversation& talk_to(std::uint32_t peer) {
        auto& known = peers_[peer];
        return known.talk != nullptr ? *known.talk : begin_talk(known);
    }
    Conversation& begin_talk(Known& known);
    void attach(Link& link, base::Nanoseconds now);
    void detach(Link& link);
    void number_links(Conversation& talk) noexcept;
    void connect_waiting(base::Nanoseconds now);
    void fail(std::uint32_t peer, ErrorCode code, base::Nanoseconds now);
    void end_of_process(std::uint32_t peer, base::Nanoseconds now);
    void end_in_order(std::uint32_t peer, base::Nanoseconds now);

    static constexpr auto never = base::never;
    // Who looks so seldom can afford to look at everything: some hundred nanoseconds for each rail.
    static constexpr base::Nanoseconds seldom = 100 * base::microsecond;
    // Events taken from a rail at a time: enough for a burst of small messages in one system call.
    static constexpr std::size_t batch = 64;

    Options options_;
    RailSet& rails_;
    sched::Policy& policy_;
    Upper& upper_;
    base::Logger& log_;

    FramePool pool_;
    PeerTable peers_;
    LinkTable links_;
    Regions regions_;
    Connector connector_;
    Recovery recovery_;
    Assessor assessor_;
    Flooder flooder_;

    // The rails that something may come of, as far as was known ...
    Rounds rounds_;
    std::uint64_t watched_of_ = 0;         // ... when links had changed so often; 0: other rails or links are up now
    std::optional<NodeTable> node_table_;  // outlives what is noted in it
    KeepingUp keeping_up_;
    Ledger ledger_;
    Outboxes outboxes_;
    LeadFinder lead_finder_;
    BulkPlan plan_;
    Feeder feeder_;
    EagerSwitch eager_;
    Watcher watcher_;
    Groups groups_;
    Survey survey_;
    // What can wait: what light frames cost, and acknowledgements that came with frames and release nothing that anybody waits
    // for. It is reckoned for many messages at once, when enough have come together, when a decision needs it, or when it is
    // due: by then whatever it feeds would be old.
    static constexpr base::Nanoseconds put_off_longest = 20 * base::microsecond;
    base::Nanoseconds due_ = never;  // never: there is nothing
    HeardAcks heard_;

    std::unique_ptr<Tracer> tracer_;  // where decisions are to be told

    OwedAcks owed_acks_;
    AckRoute ack_route_;
    Settling settling_;
    Leaving leaving_;
    std::vector<std::uint32_t> connecting_;  // peers wanted and without a link
    std::vector<std::uint32_t> incomplete_;  // peers that a rail may reach which has come up since
    std::vector<std::uint32_t> bereft_;      // peers to whom a link that we had asked for was lost
    base::Nanoseconds now_ = 0;              // as last told
    model::Watch watch_;
    Look look_;                // the one whose events are being handled,
    bool exact_look_ = false;  // if that is true; else nobody took the time
    base::Nanoseconds next_deadline_ = never;
    // What is made gets its addresses within moments, each of which is told; and what is asked elsewhere is asked for again.
    static constexpr base::Nanoseconds scan_delay = 50 * base::millisecond;
    base::Nanoseconds next_scan_ = never;  // when other devices are looked for
    bool posts_need_polls_ = false;        // of any rail
    std::array<transports::Event, batch> events_;
};

}  // namespace railmux::rails

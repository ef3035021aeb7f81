// Ledger: what is on the rails, for who chooses: charged when it is handed over, taken off when it is acknowledged, and what
// that says of their rates.
//
// Exact and at once are the numbers of frames and what is kept for sending again (Session). What only feeds predictions may
// wait, as most messages are small, and predictions are for those that are not: frames that were no choice are noted
// (put_off), and charged some at a time (charge_late), with the times at which they went; so what they cost is reckoned once
// for many. Before anything is taken off it has been charged. Of what is put off at a time one frame is followed, and the time
// of its answer is noted when that comes: it shows the latency.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its links, peers and policy. Frames put off are charged before they are
// released.
//
// When frames come is known of some, as the peer is asked, and of the last heavy one before them. What was known of the rail
// when such a frame was handed over is noted with its charge (note), which may be when it has left.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "rails/arrival_times.hpp"
#include "rails/frame.hpp"
#include "rails/keeping_up.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rounds.hpp"
#include "rails/shown_rate.hpp"
#include "rails/tracer.hpp"
#include "sched/node_load.hpp"
#include "sched/pace.hpp"
#include "sched/policy.hpp"
#include "sched/settling.hpp"

namespace railmux::rails {

class Ledger {
public:
    /// Whether the peer is asked when a frame comes, and why.
    enum class Asked : std::uint8_t { no, due, at_end };

    // Frames up to this size show the latency of a link.
    static constexpr std::uint64_t small_bytes = sched::small_bytes;

    Ledger(std::size_t rails, sched::Policy& policy, PeerTable& peers, LinkTable& links, const Looks& looks,
           const KeepingUp& keeping_up);

    /// From now on decisions are told to `tracer`; nullptr: to nobody. They stay what they would be.
    void tell(Tracer* tracer) noexcept {
        tracer_ = tracer;
        told_mask_ = tracer == nullptr ? noted_mask : 0;
    }

    // --- Handing over ------------------------------------------------------------------------------------------------

    /// Notes what is handed to a link and will be acknowledged.
    void charge(Link& link, Frame& frame, base::Nanoseconds now);
    /// The same, later: it was no choice. True: follow() is to be called.
    [[nodiscard]] RAILMUX_IN_LINE bool put_off(Frame& frame) noexcept {
        note_heavy(frame, frame.rail);
        late_[late_count_++] = &frame;
        return late_count_ == 1 || late_count_ % most_late == 0 || noted(frame);
    }
    /// Of frames put off some are followed, until they are answered. False: now is not too early for all that was put off.
    [[nodiscard]] bool follow(const Link& link, Conversation& talk, const Frame& frame, base::Nanoseconds now) noexcept;
    [[nodiscard]] bool any_late() const noexcept { return late_count_ > 0; }
    /// ... and it is so much that it counts beside what others have on the rails.
    [[nodiscard]] bool much_late() const noexcept;
    void charge_late();
    /// Changes when what is on the rails is reckoned anew, for a choice or for what was put off.
    [[nodiscard]] std::uint32_t reckonings() const noexcept { return reckonings_; }
    /// What was handed to a link will not be acknowledged over it.
    void uncharge(Frame& frame, base::Nanoseconds now) noexcept;
    /// Frames to the peer have a lead because nothing is on any of the rails that lead there: it ends when something heavy is
    /// handed to one of them, for whomever.
    void leads_by_idle(std::uint32_t peer) {
        auto& known = peers_[peer];
        if (!known.idle_lead) idle_leads_.push_back(peer);
        known.idle_lead = true;
        for (const auto& candidate : known.talk->candidates) idle_rails_ |= std::uint64_t{1} << candidate.rail;
    }
    /// Whether the peer has one, and nobody else.
    [[nodiscard]] bool leads_alone(std::uint32_t peer) const noexcept {
        return idle_leads_.size() == 1 && idle_leads_.front() == peer;
    }
    /// What is handed over next ends no lead, until leads_by_idle(): who leads alone has taken account of it.
    void set_leads_aside() noexcept {
        for (const auto peer : idle_leads_) peers_[peer].idle_lead = false;
        idle_leads_.clear();
        idle_rails_ = 0;
    }

    // --- Acknowledgements --------------------------------------------------------------------------------------------

    /// Everything before `header.ack` is known to have arrived, by a frame that came over `link`; to be told of each that says
    /// more than was known.
    void heard(Link& link, Conversation& talk, const FrameHeader& header, base::Nanoseconds now) noexcept {
        talk.spreading.came_through(header.ack, now);
        auto& followed = talk.followed;
        if (header.ack == followed.seq + 1 && followed.link == link.slot) answered(link, followed, header, now);
    }
    /// Whether the peer is to be asked when this frame comes, which is about to be handed to the link: that has not been asked
    /// for long, or more than before is waiting there.
    [[nodiscard]] bool due(const Link& link, const Frame& frame, base::Nanoseconds now) const noexcept;
    /// Asks the peer then, or if it is the `last` for a while. note() is to be called when it has been charged.
    [[nodiscard]] Asked ask(const Link& link, Frame& frame, base::Nanoseconds now, bool last = false) const noexcept;
    /// What is known of the rail now, with the frame, for when it is known when that came. Of heavy ones that is always noted
    /// where there is a choice: what comes after them may tell when they came. All that was put off is charged.
    void note(Link& link, const Frame& frame, Asked asked) noexcept;
    /// The same of the last of several light ones that leave together, by a lead: the first of a burst leaves by itself, and is
    /// in time on a rail that holds up all that follow. What waits for the link now leaves next.
    void time_gathered(Link& link, base::Nanoseconds now);
    /// When what waits for the link now, some of which will be noted, is given to the rail, is to be told: posting().
    static void await_posting(Link& link) noexcept { link.timed_waits = true; }
    /// The rail of the link is given all that waits for it, now. Until then it was no doing of the rail's that it had not come,
    /// unless that was full: other messages of a burst, and other rails' share of it, take the processor some ten microseconds.
    static void posting(Link& link, base::Nanoseconds now) noexcept;
    /// The answer, from the peer's clock: what it says of the rail it says whatever its own way took. With what is returned, if
    /// it is anything, learn_from_timed is to be called, when all that it acknowledges has been: by then another frame may be
    /// timed, so it is a copy.
    [[nodiscard]] std::optional<Link::Timed> timed(Link& link, const FrameHeader& header, const Arrival& there,
                                                   base::Nanoseconds now) noexcept;
    /// With an answer to the peer: what traffic has shown of the rails of its links, of one after the other; and the same from
    /// there, of a link that may be over here.
    [[nodiscard]] ShownRate next_rate_to_tell(Conversation& talk) noexcept;
    void heard_rate(const Conversation& talk, const ShownRate& rate) noexcept;
    void learn_from_timed(Link& link, const Link::Timed& timed, base::Nanoseconds now) noexcept;
    /// ... of the burst before the one that the frame began; before what the answer acknowledges has been.
    void learn_from_before(Link& link, const FrameHeader& header, const ArrivalTimes& times,
                           base::Nanoseconds now) noexcept;
    /// What one acknowledgement takes off: frames in the order of their numbers. Of small ones in a row that went over the same
    /// link only the last says anything: the others are counted, and taken off together.
    class Taking {
    public:
        Taking(Ledger& ledger, const Link& by, const FrameHeader& header, base::Nanoseconds now) noexcept
            : ledger_(ledger), by_(by), header_(header), now_(now) {}
        Taking(const Taking&) = delete;
        Taking& operator=(const Taking&) = delete;
        ~Taking() { end_row(); }

        /// `frame` is acknowledged.
        RAILMUX_IN_LINE void operator()(Frame& frame) {
            const auto bytes = frame.wire_bytes();
            const bool quiet = frame.charged && frame.predicted == 0 && frame.token == 0 &&
                               bytes <= sched::light_bytes && frame.seq + 1 != header_.ack;
            if (!quiet || frame.link != link_ || bytes_ + bytes >= left_) [[unlikely]] {
                end_row();
                ledger_.acknowledged(frame, by_, header_, now_);
                if (quiet) begin_row(frame.link);
                return;
            }
            frame.charged = false;
            bytes_ += bytes;
            ++count_;
        }

    private:
        void begin_row(std::uint32_t link) noexcept;
        void end_row() noexcept;

        Ledger& ledger_;
        const Link& by_;
        const FrameHeader& header_;
        base::Nanoseconds now_;
        std::uint32_t link_ = no_link;
        std::uint32_t count_ = 0;
        std::uint64_t bytes_ = 0;
        std::uint64_t left_ = 0;  // on the rail after the first of the row: the last of that shows something
    };
    /// These were all that came in together; they may have been there for `unseen`.
    void settle(base::Nanoseconds now, base::Nanoseconds unseen) noexcept {
        if (released_ != 0) sched::settle(paces_, std::exchange(released_, 0), node_, busy_, now, {.unseen = unseen});
    }

    // --- For who chooses ---------------------------------------------------------------------------------------------

    /// What the policy is to know of the links now.
    void refresh(Conversation& talk, base::Nanoseconds now) noexcept;
    /// The place of the link that a frame of so many bytes, which goes alone, is to try instead of the one of that choice; as
    /// many as there are: it is to go there (sched::LoneTrial). Right after refresh().
    [[nodiscard]] std::size_t lone_trial(const Conversation& talk, std::size_t choice, std::uint64_t bytes,
                                         base::Nanoseconds now) noexcept;
    /// ... of what is on the rail of this one, where more has been given to it since.
    void look(const Link& link) noexcept {
        auto& talk = *peers_[link.peer].talk;
        sched::look_at_backlog(talk.candidates[link.place], paces_[link.rail], node_, looks_.looked);
    }
    [[nodiscard]] const sched::Pace& pace(std::uint32_t rail) const noexcept { return paces_[rail]; }
    /// By what it carries, the network is to be given little at a time (transports::Work::slow), which costs a core some
    /// hundredths at 2.5 Gbit/s.
    [[nodiscard]] bool slow(std::uint32_t rail) const noexcept {
        constexpr auto per_byte = sched::to_ticks(base::Nanoseconds{16}) / 5;  // 3.2 ns: 2.5 Gbit/s
        return paces_[rail].per_byte() > per_byte;
    }
    [[nodiscard]] std::uint64_t allowance(std::uint32_t rail) const noexcept {
        return paces_[rail].allowance(busy_.time());
    }
    /// The rail has been given something large, which took the process so long.
    void handing(std::uint32_t rail, base::Nanoseconds time) noexcept { paces_[rail].handing(time); }
    void measured(std::uint32_t rail, sched::Ticks per_byte) noexcept { paces_[rail].measured(per_byte, busy_.time()); }
    void restored(std::uint32_t rail, base::Nanoseconds now) noexcept { paces_[rail].restored(now, busy_.time()); }
    /// A clock that stands while there is no traffic on any rail.
    [[nodiscard]] base::Nanoseconds busy() const noexcept { return busy_.time(); }
    [[nodiscard]] sched::NodeLoad& node() noexcept { return node_; }
    /// Whether the backlog of each rail is what its links have on the way: for assertions and tests.
    [[nodiscard]] bool balanced() const;

private:
    // So many are put off at most: what they cost together is small, a sixteenth for each.
    static constexpr std::size_t most_late = 16;
    // 33 us at 1 Gbit/s.
    static constexpr std::uint64_t much = 4096;
    // What frames that were no choice cost is reckoned by what was known so long ago: rates change more slowly.
    static constexpr base::Nanoseconds fresh = 50 * base::microsecond;
    // A link is timed as often as that: an answer costs both sides some microseconds.
    static constexpr base::Nanoseconds time_spacing = base::millisecond;
    static constexpr base::Nanoseconds late_time_spacing = 250 * base::microsecond;
    // The ends of bursts besides, more rarely: each millisecond took 2 % of the rate of 8 B both ways with 8 under way.
    static constexpr base::Nanoseconds gathered_time_spacing = 4 * base::millisecond;
    // The end of a burst is told of with the next one, if that is no later: two common clocks go apart by some microseconds.
    static constexpr base::Nanoseconds told_later = 250 * base::millisecond;
    // Hosts tell of nothing shorter than what is worth it. Who has heard of no end from them for so long takes what processes
    // tell: changed rates are to be followed within 100 ms.
    static constexpr base::Nanoseconds told_of_late = 50 * base::millisecond;
    // After so long without an answer another frame is timed: the answer may be lost, or refused (tell_time).
    static constexpr base::Nanoseconds time_out = 100 * base::millisecond;
    // A rail of 8 Mbit/s: who says that one is slower moves nothing else by it.
    static constexpr sched::Ticks slowest_told = sched::to_ticks(base::microsecond);
    // Of so many frames one is noted to compare prediction and delivery: enough to judge by, and next to nothing a frame.
    static constexpr std::uint32_t frames_per_prediction = 64;
    static constexpr std::uint32_t noted_mask = frames_per_prediction - 1;
    static_assert(max_rails <= 64);

    void look_for_landed(const Conversation& talk, base::Nanoseconds now) noexcept;
    [[nodiscard]] static std::uint64_t unposted(const Link& link) noexcept;
    void note_landed(Link& link, base::Nanoseconds now) noexcept;
    [[nodiscard]] static bool noted(const Frame& frame) noexcept { return (frame.seq & noted_mask) == 0; }
    /// Nobody else has anything on the rail that would count.
    [[nodiscard]] bool ours(std::uint32_t rail) const noexcept { return node_.others(rail).backlog <= small_bytes; }
    void acknowledged(Frame& frame, const Link& by, const FrameHeader& header, base::Nanoseconds now);
    void answered(Link& link, Conversation::Followed& followed, const FrameHeader& header,
                  base::Nanoseconds now) noexcept;
    /// Frames that went to a link in a row.
    struct Row {
        Frame* const* frames;  // `count` of them
        std::uint32_t count = 1;
        std::uint64_t bytes = 0;
        base::Nanoseconds begun = 0;  // when the first was handed over,
        base::Nanoseconds ended = 0;  // and the last
    };
    RAILMUX_IN_LINE void note_heavy(const Frame& frame, std::uint32_t rail) noexcept {
        if (frame.wire_bytes() > sched::light_bytes && (idle_rails_ >> rail & 1) != 0) [[unlikely]]
            end_idle_leads();
    }
    void end_idle_leads() noexcept;
    void charge_row(Link& link, const Row& row);
    void charge_noted(const Link& link, const Row& row);
    void learn_from(const Link& by, const FrameHeader& header, const Frame& frame, base::Nanoseconds now);
    [[nodiscard]] static bool rests(const Link::Timed& timed, base::Nanoseconds spacing,
                                    base::Nanoseconds now) noexcept;
    [[nodiscard]] Link::Timed timing_of(const Link& link, const Frame& frame) const noexcept;
    [[nodiscard]] sched::Ticks latency(const Link& link, base::Nanoseconds now) const noexcept;
    void learn_from_train(const Link& link, const sched::Train& train, std::uint32_t with, base::Nanoseconds now,
                          std::optional<base::Nanoseconds> held);
    void compare(const Link& by, const FrameHeader& header, const Frame& frame, base::Nanoseconds now) noexcept;

    sched::Policy& policy_;
    PeerTable& peers_;
    LinkTable& links_;
    const Looks& looks_;
    const KeepingUp& keeping_up_;
    Tracer* tracer_ = nullptr;  // the rail manager's, if there is one
    // Something is to be told of rows whose first frame has none of these bits in its number: of all, where there is a tracer.
    std::uint32_t told_mask_ = noted_mask;
    std::array<Frame*, 4 * most_late> late_;  // put off, the first late_count_
    std::size_t late_count_ = 0;
    std::uint32_t reckonings_ = 0;
    std::vector<std::uint32_t> idle_leads_;  // peers, each once
    std::uint64_t idle_rails_ = 0;           // that lead to one of them, as bits
    std::vector<sched::Pace> paces_;         // by rail
    sched::NodeLoad node_;                   // what others of this node have on them
    sched::BusyClock busy_;
    std::uint64_t released_ = 0;  // rails, as bits, where something was acknowledged since the last settle()
};

}  // namespace railmux::rails

// Link: one connection of a local rail to a rail of a peer, as the rail manager keeps it. LinkTable: all of them.
//
// Threads: one engine at a time.
// Lifetime: a Link belongs to the table, from connect (or the other side's request) to its link_down. Slots are
// reused; the transport's LinkId, generation included, tells an old link from its successor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "base/stable_vector.hpp"
#include "rails/arrival_times.hpp"
#include "rails/frame.hpp"
#include "rails/handshake.hpp"
#include "rails/silence.hpp"
#include "rails/underway.hpp"
#include "rails/unheard.hpp"
#include "sched/echo.hpp"
#include "sched/fill.hpp"
#include "sched/lag.hpp"
#include "sched/lone_trial.hpp"
#include "sched/pace.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

struct Assessed;      // assessor.hpp
struct Conversation;  // peer.hpp
struct Traffic;       // peer.hpp
class ProbePuts;

inline constexpr std::uint32_t no_peer = ~std::uint32_t{0};

enum class LinkState : std::uint8_t {
    free,
    connecting,  // we asked; waiting for link_up
    accepting,   // they asked, we accepted; waiting for link_up
    proving,     // they asked; waiting for the proof
    live,
    closing,  // disconnected by us; waiting for link_down
};

struct Link {
    Link();
    Link(Link&&) noexcept;
    Link& operator=(Link&&) noexcept;
    ~Link();

    transports::LinkId id;
    transports::Rail* over_rail = nullptr;  // of a live link: its rail,
    Traffic* traffic = nullptr;             // and what that carries to and from its peer
    Conversation* lane = nullptr;  // of its peer: where plain frames are taken the short way (RailManager::take_next)
    std::uint32_t slot = 0;
    std::uint32_t place = 0;       // among the live links of its peer
    std::uint32_t rail = 0;        // local
    std::uint8_t remote_rail = 0;  // the peer's number
    LinkState state = LinkState::free;
    bool checksum = false;   // its frames are sealed (seal.hpp)
    bool corrupted = false;  // something came over it that was not what was sent
    bool initiated = false;  // by us
    bool dirty = false;      // listed for posting
    bool refused = false;    // the rail took less than it was offered last time
    bool leaving = false;    // one side has said that it closes the link
    bool was_live = false;   // the handshake was done once
    bool over = false;       // its link_down has been polled
    bool retried = false;    // one that was lost, or never came up, is asked for again, outside of any attempt
    bool stands_in = false;  // it was asked for in the place of another: not wanted once both its rails have others
    std::uint32_t peer = no_peer;
    std::uint64_t nonce = 0;      // of its hello: names it at both ends, once the acceptor has it, or it is live
    base::Nanoseconds since = 0;  // of its state
    base::Nanoseconds limit = 0;  // for becoming live
    std::string label;            // both ends, for people

    FrameQueue outbox;                 // not yet taken by the transport
    std::uint64_t queued_bytes = 0;    // in the outbox, or taken and not done
    std::uint64_t queued_answers = 0;  // ... of them answers (is_answer), without what they put
    std::uint32_t quiet_max = 0;       // of its rail: frames up to that are over when it has taken them
    std::uint32_t at_once_max = 0;     // ... and up to that they need nothing more: none where frames are sealed
    bool chains = false;               // of its rail, too: several at once cost less
    std::uint32_t bulk = 0;            // frames with a put among those
    std::uint64_t bulk_received = 0;   // bytes of large messages that it has brought
    std::uint32_t heavy_received = 0;  // messages that are not light, and came at once: wraps around
    std::uint32_t gets = 0;            // in the outbox, or taken and not done
    Underway underway;                 // what is acknowledged, of what was handed to it

    /// It was lost itself, and is wanted whatever others there are.
    [[nodiscard]] bool comes_back() const noexcept { return retried && !stands_in; }

    /// Who asks without taking the answers gets no more of them: they would pile up here.
    [[nodiscard]] bool asks_too_much() const noexcept { return queued_answers > most_answers; }
    static constexpr std::uint64_t most_answers = 256 << 10;  // some of the largest

    /// The newest acknowledgement that came with a frame and is not taken yet.
    struct Heard {
        FrameHeader header;           // the frame's
        base::Nanoseconds at = 0;     // when it was found,
        base::Nanoseconds taken = 0;  // and when it was not there yet
        bool credit = false;          // it, or one before, brought some
        bool listed = false;          // there is one
    };
    Heard heard;

    sched::Echo echo;
    sched::LoneTrial lone_trial;
    sched::Lag lag;
    /// Half of what timed frames and their answers took: the latency is no more. A probe may have been held up, and then
    /// nothing else would be sent that shows it.
    sched::LeastOfLate<sched::Ticks> passed;
    sched::Fill fill;
    sched::Ticks shown_there = 0;  // G of its rail at the other end, as traffic there has shown; 0: nothing has

    /// A frame of which the peer has been asked to say when it came.
    struct Timed {
        std::uint32_t seq = 0;
        bool awaited = false;
        bool ours = false;              // nobody else had anything on the rail,
        bool alone = false;             // nor had we, and it is a message of more than a few bytes
        std::uint32_t messages = 0;     // on the way to the peer then, over whatever rail, the frame included
        std::uint64_t ahead = 0;        // what was on the rail then, the frame included
        std::uint64_t since_idle = 0;   // what had been handed to the rail since it was idle, the frame included,
        base::Nanoseconds idle = 0;     // ... which it was until then
        std::uint64_t position = 0;     // of the frame's end in all that was handed to the rail
        std::uint64_t end = 0;          // of the frame, of all that was handed to the link
        base::Nanoseconds sent = 0;     // when the rail was given it; while it waits for that, when it was decided
        bool waits = false;             // for that,
        bool train_waits = false;       // ... and so does all that the rail is to carry before it
        bool by_host = false;           // the host over there said when it arrived
        base::Nanoseconds landed = 0;   // it was by then, as far as is known; 0: not known
        base::Nanoseconds arrived = 0;  // by our clock; 0: not known yet
    };
    Timed timed;
    Timed timed_end;  // the same, of one with which a share of something large ended
    Timed latest;     // the last that could have been: what ended a burst is known by what comes next
    Timed before;     // it was the last when another one was timed on the idle rail, whose answer tells of it, too
    std::uint32_t asked = 0;   // the number of that one
    bool timed_waits = false;  // one of these, or what will be one, waits for its rail (Ledger::await_posting)
    /// Of what the rail was given last together, of all that was to be noted.
    struct Posting {
        base::Nanoseconds first = 0;   // when the first of it was decided,
        base::Nanoseconds at = 0;      // when the rail was given it,
        base::Nanoseconds before = 0;  // and when the last before that was decided
    };
    Posting posting;
    base::Nanoseconds last_posted = 0;  // when the last was decided that the rail was given from the outbox
    /// What the peer has sent last that was more than a few bytes.
    struct Came {
        std::uint32_t seq = 0;
        Arrival when;
    };
    Came came;
    base::Nanoseconds host_had = 0;  // what was received last, by what its rail says
    /// ... of that, if it was found `now`.
    [[nodiscard]] Arrival arrival(base::Nanoseconds now) const noexcept {
        const bool known = host_had > 0 && host_had <= now;
        return {known ? host_had : now, known};
    }
    bool late = false;  // the last that was timed
    [[nodiscard]] base::Nanoseconds arrival_of(std::uint32_t seq) const noexcept {
        return timed.seq == seq ? timed.arrived : timed_end.seq == seq ? timed_end.arrived : 0;
    }
    base::Nanoseconds said_at = 0;  // when the process at the other end last said something over it
    Silence silence;
    Unheard unheard;
    std::unique_ptr<Assessed> assessed;     // of a live link
    std::unique_ptr<ProbePuts> probe_puts;  // while one end or the other measures in full

    struct Setup {  // kept until proven
        Hello::Bytes hello;
        Reply::Bytes reply;
    };
    std::unique_ptr<Setup> setup;

    [[nodiscard]] bool pending() const noexcept {
        return state == LinkState::connecting || state == LinkState::accepting || state == LinkState::proving;
    }
};

class LinkTable {
public:
    explicit LinkTable(std::size_t rails) : by_rail_(rails), count_(rails) {}

    /// A new link of `rail` known to the transport as `id`.
    Link& add(std::uint32_t rail, transports::LinkId id);
    void remove(Link& link);

    [[nodiscard]] RAILMUX_IN_LINE Link* find(std::uint32_t rail, transports::LinkId id) noexcept {
        const auto& index = by_rail_[rail];
        if (id.index < index.size()) [[likely]] {
            if (Link* link = index[id.index]; link != nullptr && link->id == id) [[likely]]
                return link;
        }
        return find_old(rail, id);
    }
    /// Counts links that came and went.
    [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
    [[nodiscard]] Link& at(std::uint32_t slot) noexcept { return links_[slot]; }
    [[nodiscard]] const Link& at(std::uint32_t slot) const noexcept { return links_[slot]; }
    [[nodiscard]] bool any_of(std::uint32_t rail) const noexcept { return count_[rail] > 0; }

    /// Calls `visit(Link&)` for every link in use. `visit` may add and remove links.
    template <typename Visit>
    void for_each(Visit visit) {
        for (std::size_t slot = 0; slot < links_.size(); ++slot) {
            if (links_[slot].state != LinkState::free) visit(links_[slot]);
        }
    }

private:
    [[nodiscard]] Link* find_old(std::uint32_t rail, transports::LinkId id) noexcept;

    base::StableVector<Link> links_;
    std::vector<std::uint32_t> free_;
    std::vector<std::vector<Link*>> by_rail_;  // by LinkId::index; nullptr: none
    std::vector<std::uint32_t> count_;         // by rail
    std::uint64_t changes_ = 1;
};

}  // namespace railmux::rails

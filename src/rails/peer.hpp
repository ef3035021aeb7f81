// Peer entries: what a context knows of each other process, and, once it talks to it, the session and its links.
//
// Threads: one engine at a time.
// Lifetime: entries live as long as the context; their numbers are what Peer::index() shows. Known is small, because a
// job may have many thousand processes of which one talks to few: 256 bytes with its address and what finds it (a test
// counts). Conversation comes with the first operation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <railmux/assessment.hpp>
#include <railmux/error.hpp>

#include "base/clock.hpp"
#include "base/in_line.hpp"
#include "base/stable_vector.hpp"
#include "rails/inflow.hpp"
#include "rails/lead.hpp"
#include "rails/link.hpp"
#include "rails/owed_acks.hpp"
#include "rails/peer_clock.hpp"
#include "rails/process_address.hpp"
#include "rails/session.hpp"
#include "rails/spreading.hpp"
#include "sched/contest.hpp"
#include "sched/division.hpp"
#include "sched/policy.hpp"
#include "sched/processors.hpp"

namespace railmux::rails {

/// What one rail carried to and from one peer.
struct Traffic {
    std::uint64_t sent_bytes = 0;
    std::uint64_t received_bytes = 0;
    std::uint64_t sent_frames = 0;
    std::uint64_t received_frames = 0;
    std::uint64_t resent_frames = 0;
    std::uint64_t duplicate_frames = 0;
    std::uint64_t corrupted_frames = 0;
    std::uint64_t links_lost = 0;
    std::uint64_t copied_bytes = 0;  // of large messages, into registered memory
    std::uint64_t registrations = 0;
    std::uint64_t registered_bytes = 0;
    std::uint64_t registrations_reused = 0;
    // Of some frames: what was predicted, and what came of it.
    std::uint64_t timed_frames = 0;
    std::uint64_t predicted_ns = 0;
    std::uint64_t real_ns = 0;
    std::uint64_t error_ns = 0;

    /// What was known of a link when it ended, until there is another one between the same two rails.
    struct Ended {
        std::uint8_t remote_rail = 0;
        LinkModel model;
    };
    std::vector<Ended> ended;
};

/// Links that share a bottleneck, as measured on demand (groups.cpp).
struct LinkGroup {
    struct Member {
        std::uint32_t link = 0;
        std::uint32_t rail = 0;
        double bps = 0;  // alone
        bool by_processors = false;
    };
    std::vector<Member> members;  // two or more, the fastest first
    std::size_t used = 0;         // so many of the first fill it; the others are spare
    double bps = 0;               // of all together
    base::Nanoseconds slow = 0;   // since when the used ones bring much less; 0: they do not
};

struct Conversation {
    explicit Conversation(FramePool& pool) : session(pool) {}

    /// Whether a message may be sent now.
    [[nodiscard]] bool takes_messages() const noexcept {
        return !links.empty() && waiting.empty() && session.open_for_messages();
    }

    /// Whether there is more than one link to choose from, as far as is known.
    [[nodiscard]] bool has_choice() const noexcept { return links.size() > 1 && only == none; }

    /// Whether heavy frames that leave together go over the same link, as far as is known.
    [[nodiscard]] bool over_one_link() const noexcept {
        return !has_choice() || spreading.now() == sched::Spread::single;
    }

    /// Whether next to nothing is on any of the rails, as far as is known.
    [[nodiscard]] bool rails_idle() const noexcept {
        return std::ranges::all_of(candidates, [](const auto& each) { return each.backlog <= sched::light_bytes; });
    }
    /// How many links there are to choose from.
    [[nodiscard]] std::uint32_t choices() const noexcept {
        return static_cast<std::uint32_t>(std::ranges::count(candidates, false, &sched::Candidate::spare));
    }

    /// Whether the frame `heavy` tells of is not acknowledged yet.
    [[nodiscard]] bool heavy_outstanding() const noexcept { return outstanding(heavy); }

    /// Whether what went last without being asked for is not known to have arrived.
    [[nodiscard]] bool unasked_outstanding() const noexcept { return Session::precedes(session.heard(), unasked); }
    /// Whether the frame before that number is not acknowledged yet.
    [[nodiscard]] bool outstanding(std::uint32_t beyond) const noexcept {
        return Session::precedes(session.acknowledged(), beyond);
    }

    Session session;
    FrameQueue waiting;                        // frames for which the session's window has no room yet
    std::vector<std::uint32_t> links;          // live ones, fastest first
    std::vector<sched::Candidate> candidates;  // parallel to links
    std::vector<sched::Cost> costs;            // parallel to links: by the model, before traffic corrects it
    base::Nanoseconds planned = 0;             // when what is left of bulk was last divided (BulkPlan)
    base::Nanoseconds refreshed = not_yet;     // when they were told what traffic has shown (Ledger)
    base::Nanoseconds chosen = 0;              // when a heavy frame had a choice of its own
    static constexpr base::Nanoseconds not_yet = -base::second;  // however early by its clock a process begins
    static constexpr auto none = ~std::uint32_t{0};
    std::uint32_t only = none;          // the place of the one that there is to choose from, if no other, since then
    std::vector<std::uint64_t> claims;  // parallel to links: bulk planned for it and not handed over yet
    std::vector<LinkGroup> groups;      // a link is in one at most
    sched::Processors processors;       // which link is used of those that they move

    Leads leads;

    // Of frames that are charged later one at a time whose answer is timed (Ledger).
    struct Followed {
        std::uint32_t link = no_link;  // that it went to, until it is answered over it
        std::uint32_t seq = 0;
        bool alone = false;  // nothing was on its way to the peer, nor of others on the rail
        base::Nanoseconds sent = 0;
        base::Nanoseconds answered = 0;  // 0: not, or nobody knows how long the answer was kept back
        base::Nanoseconds held = 0;      // ... by the peer
    };
    Followed followed;

    std::uint32_t unasked = 0;  // one beyond the number of the last frame that nobody asked for (FrameType::inlined)
    std::uint32_t heavy = 0;    // one beyond the number of the last frame whose acknowledgement should not be put off
    std::uint32_t large = 0;    // ... of the last one that is longer than any which goes without being asked for
    bool hungry = false;        // operations wait for room: for acknowledgements, or for credit
    // Acknowledgements should not be put off: of a heavy frame, or because something waits for them.
    bool acks_wanted = false;

    OwedAcks::To owed;
    bool follows = false;       // of rails that are about equal, we take the peer's: one side must, and not both
    bool behind_there = false;  // the peer does not keep up with what comes in: rails wait for it, it not for them
    std::uint32_t last_link = no_link;  // over which the last frame came in
    Inflow inflow;
    base::Nanoseconds arrived = 0;  // when the last frame came in,
    std::uint32_t newest = 0;       // and one beyond its number
    PeerClock clock;
    sched::Contest light_contest{sched::Contest::Kind::light, 0};
    sched::Contest heavy_contest{sched::Contest::Kind::heavy, 0};
    Spreading spreading;
    std::uint32_t told = 0;  // the place of the link whose rate the peer was told last (ShownRate)
    sched::Division division;

    // Of our data, by the peer's application, in credit units: only grows, and wraps around.
    std::uint32_t consumed_there = 0;

    // The largest message that goes with its header, by the model of the link that would bring that first; and whether other
    // memory than what the application has registered would be copied all the same, so that it goes so up to eager.max.
    std::uint32_t eager_max = 0;
    bool eager_if_unregistered = false;
    // The largest message that is better sent in several frames than asked for first; 0: none.
    std::uint32_t unasked_max = 0;

    /// What every frame tells besides its own; known only when it goes out. `behind`: we do not keep up.
    [[nodiscard]] RAILMUX_IN_LINE Stamp stamp(bool behind, base::Nanoseconds now) const noexcept {
        const auto ack = session.ack();
        const auto held = newest == ack ? now - arrived : held_longest;  // else another one came in later
        return {ack, owed.consumed, held, behind, spreading.now()};
    }

    /// True if the application over there has taken more of what we sent.
    [[nodiscard]] bool take_credit(const FrameHeader& header) noexcept {
        const auto more = header.consumed - consumed_there;
        if (more == 0 || more >= ~std::uint32_t{0} / 2) return false;
        consumed_there = header.consumed;
        return true;
    }

    // Links of which it is not settled yet what has come over them, by their nonces: those that frames of ours are parked for,
    // and those that the peer asks for and that are not over here.
    std::vector<std::uint64_t> settling;
    struct Asked {
        std::uint64_t nonce = 0;
        std::uint64_t by = 0;  // the link that it was asked by, or the answer was given by, last
    };
    std::vector<Asked> to_settle;
    std::vector<Asked> answered;  // the last ones that are over here

    // Connecting.
    bool linked = false;            // there has been a link
    bool late = false;              // ... since our goodbye only
    bool wanted = false;            // operations wait for a link
    base::Nanoseconds give_up = 0;  // when they fail
    base::Nanoseconds next_attempt = 0;
    base::Nanoseconds back_off = 0;
    std::string causes;  // of pairs that did not connect, one line each, since the last that did
    ErrorCode worst = ErrorCode::unreachable;

    bool bulk_offered = false;  // the layer above has bulk
};

struct Known {
    std::uint64_t instance = 0;  // 0: not known yet
    std::uint32_t rank = no_rank;
    std::uint8_t epoch = 0;            // counts sessions with it
    bool left : 1 = false;             // it said goodbye
    bool ended : 1 = false;            // we were told that its process has: without links it is not looked for
    bool orderly : 1 = false;          // ... in good order
    bool loss_told : 1 = false;        // ... and not, and that it is lost has been told
    bool idle_lead : 1 = false;        // a lead to it ends when something heavy is handed over (Ledger::leads_by_idle)
    ErrorCode failed = ErrorCode::ok;  // how the last session ended, if it ended badly
    std::unique_ptr<std::string> failure;  // and why; null while nothing has failed
    std::vector<std::byte> address;        // encoded ProcessAddress; empty: not known yet
    std::unique_ptr<Conversation> talk;
    std::unique_ptr<Traffic[]> traffic;  // by local rail; null until the first conversation
};

class PeerTable {
public:
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(known_.size()); }
    [[nodiscard]] Known& operator[](std::uint32_t peer) noexcept { return known_[peer]; }
    [[nodiscard]] const Known& operator[](std::uint32_t peer) const noexcept { return known_[peer]; }

    /// The entry with that instance, or else that rank: then it may be that of another process. no_peer if there is none.
    [[nodiscard]] std::uint32_t find(std::uint64_t instance, std::uint32_t rank) const noexcept;
    /// The same; made if there is none.
    std::uint32_t of_rank(std::uint32_t rank);
    std::uint32_t of_instance(std::uint64_t instance, std::uint32_t rank);

    /// What a process is to the entry that was found for it: a rank may be started anew, and its entry is the newest one's.
    enum class Standing : std::uint8_t { current, successor, predecessor };
    [[nodiscard]] Standing standing(std::uint32_t peer, std::uint64_t instance) const noexcept;

    /// Notes a predecessor that we had never heard of.
    void note_predecessor(std::uint32_t peer, std::uint64_t instance) { by_instance_.try_emplace(instance, peer); }

    /// Notes what is now known of a peer.
    void learn(std::uint32_t peer, std::uint64_t instance, std::span<const std::byte> address);

    [[nodiscard]] std::string name(std::uint32_t peer) const;

private:
    base::StableVector<Known> known_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_instance_;  // predecessors, too: none may come back
    std::unordered_map<std::uint32_t, std::uint32_t> by_rank_;
};

}  // namespace railmux::rails

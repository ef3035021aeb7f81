// Connector: brings links up. Tries the pairs of rails towards a peer, answers others' requests, and runs the handshake of
// every link until it is proven.
//
// Pairs are tried in parallel, nearest first: pairs of one subnet or fabric; then, for rails still without a link, routed
// ones; then, if nothing else is live, fall-backs. A failed pair removes only itself. Where a link is lost, links to other
// rails stand in for it.
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its rails, links and peers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.hpp"
#include "base/log_limit.hpp"
#include "rails/handshake.hpp"
#include "rails/link.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

/// What the connector needs from the rail manager.
class ConnectorHost {
public:
    /// The handshake is done: the link may carry frames.
    virtual void link_proven(Link& link, base::Nanoseconds now) = 0;
    /// A live link gives way to another between the same rails; the connector has disconnected it.
    virtual void link_dropped(Link& link, base::Nanoseconds now) = 0;
    /// No pair is being tried any more of those that start() began with.
    virtual void attempt_over(std::uint32_t peer, base::Nanoseconds now) = 0;
    /// A link that we asked for, by start or retry, did not come up; `hopeless` if it never will.
    virtual void pair_failed(const Link& link, std::string_view cause, bool hopeless, base::Nanoseconds now) = 0;
    /// The peer is the process `instance`, whose session with us has that epoch: another session with it, or one with the
    /// process whose place it took, ends.
    virtual void follow_session(std::uint32_t peer, std::uint64_t instance, std::uint8_t epoch) = 0;
    /// Whether data over this pair of rails was corrupted so recently that it is not to be connected yet.
    [[nodiscard]] virtual bool resting(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail,
                                       base::Nanoseconds now) const = 0;

    /// The same of those that replace() began with.
    virtual void replacing_over(base::Nanoseconds now) = 0;
    /// Whether a link of this pair of rails was lost, and is asked for anew by retry(), or by the peer.
    [[nodiscard]] virtual bool is_lost(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) const = 0;

    /// The peer itself says that it leaves.
    virtual void peer_leaves(std::uint32_t peer, base::Nanoseconds now) = 0;

protected:
    ~ConnectorHost() = default;
};

class Connector {
public:
    struct Options {
        Identity self;
        JobKey key;
        base::Nanoseconds pair_limit = 2 * base::second;  // for one pair, handshake included
        bool checksum = false;                            // frames are to carry checksums
    };

    Connector(Options options, RailSet& rails, LinkTable& links, PeerTable& peers, FramePool& pool, ConnectorHost& host,
              base::Logger& log);

    /// Starts trying the pairs towards a peer whose address is known; attempt_over follows.
    void start(std::uint32_t peer, base::Nanoseconds now);
    /// Whether what start began is not over.
    [[nodiscard]] bool trying(std::uint32_t peer) const noexcept;
    /// A link to the peer was lost: tries the direct pairs of the rails that are without one now, except those that are lost
    /// themselves; replacing_over follows. False, and nothing follows, while start() tries all pairs.
    [[nodiscard]] bool replace(std::uint32_t peer, base::Nanoseconds now);
    /// Asks for one link that was lost, or never came up, for at most `limit`; pair_failed or link_proven follows. False, and
    /// nothing follows, where start would try others first, or it is being tried already. One that `comes_back` is wanted
    /// though both its rails have others: it has stood beside them.
    [[nodiscard]] bool retry(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, base::Nanoseconds limit,
                             bool comes_back, base::Nanoseconds now);
    /// Whether both rails have links to the peer without this one.
    [[nodiscard]] bool redundant(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) noexcept;
    /// Ends what start began, without attempt_over; pairs still being tried have failed.
    void abandon(std::uint32_t peer, base::Nanoseconds now);
    /// The session with the peer is over. What start began belonged to it, and ends without attempt_over or a failure; what the
    /// peer asked for is judged once more when it is proven.
    void session_over(std::uint32_t peer, base::Nanoseconds now);

    // Events of rails, as far as they concern links that are not live.
    void requested(std::uint32_t rail, const transports::Event& event, base::Nanoseconds now);
    void came_up(Link& link, std::span<const std::byte> reply, base::Nanoseconds now);
    void received(Link& link, std::span<const std::byte> bytes, base::Nanoseconds now);
    /// A link that was not live went down; the caller removes it afterwards.
    void went_down(Link& link, const transports::Event& event, base::Nanoseconds now);

    /// Ends links whose time is over. Returns when it wants to be called again; far away if never.
    [[nodiscard]] base::Nanoseconds expire(base::Nanoseconds now);

    /// From now on nobody new gets in.
    void close() noexcept { leaving_ = true; }

private:
    struct Pair {
        std::uint32_t rail = 0;
        RailAddress remote;
        transports::Reachability reachability;
        std::size_t turn = 0;  // among those of its rail, and level
        bool tried = false;
    };
    struct Attempt {
        std::uint32_t peer = no_peer;
        std::vector<Pair> pairs;
        std::uint32_t pending = 0;
        transports::Reach level = transports::Reach::direct;
        bool replaces = false;  // begun by replace()
    };

    [[nodiscard]] Attempt* attempt_of(std::uint32_t peer) noexcept;
    void forget_attempt(std::uint32_t peer) noexcept;
    void begin(std::uint32_t peer, bool replaces, base::Nanoseconds now);
    [[nodiscard]] std::vector<Pair> pairs_towards(const Attempt& attempt, const ProcessAddress& address,
                                                  std::vector<std::string>& obstacles);
    static void take_turns(std::vector<Pair>& pairs);
    void tell_cure(LocalRail& rail, const transports::Reachability& reachability);
    void advance(Attempt& attempt, base::Nanoseconds now);
    [[nodiscard]] bool worth_trying(const Attempt& attempt, const Pair& pair) noexcept;
    [[nodiscard]] bool stands_in(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) noexcept;
    void try_level(Attempt& attempt, base::Nanoseconds now);
    [[nodiscard]] Link* open_pair(std::uint32_t peer, const Pair& pair, base::Nanoseconds now);
    /// Notes why operations with this peer may fail; false when that is known already.
    [[nodiscard]] bool note_cause(std::uint32_t peer, const std::string& line);
    void pair_failed(Link& link, ErrorCode code, std::string_view cause, base::Nanoseconds now);
    void pair_done(const Link& link, base::Nanoseconds now);
    void pair_done(std::uint32_t peer, base::Nanoseconds now);
    void give_up_pair(Link& link, base::Nanoseconds now);

    template <typename Visit>
    void for_each_unproven(std::uint32_t rail, Visit visit);
    [[nodiscard]] bool waits(std::uint32_t rail, const Hello& hello);
    void drop_unproven(std::uint32_t rail, const Hello& hello, base::Nanoseconds now);
    [[nodiscard]] Verdict judge(std::uint32_t rail, std::span<const std::byte> bytes, std::uint32_t& peer,
                                base::Nanoseconds now);
    [[nodiscard]] Verdict judge(std::uint32_t rail, const Hello& hello, std::uint32_t& peer, base::Nanoseconds now);
    [[nodiscard]] bool loses_tie(std::uint32_t peer, std::uint32_t rail, const Hello& hello, base::Nanoseconds now);
    void settle_tie(const Link& winner, base::Nanoseconds now);
    template <typename Visit>
    void for_each_rival(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, Visit visit);
    [[nodiscard]] Reply::Bytes make_reply(std::uint32_t rail, std::span<const std::byte> hello, Verdict verdict,
                                          std::uint32_t peer);
    void send_proof(Link& link);
    void disconnect(Link& link, base::Nanoseconds now);
    [[nodiscard]] bool covered(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail) noexcept;

    Options options_;
    RailSet& rails_;
    LinkTable& links_;
    PeerTable& peers_;
    FramePool& pool_;
    ConnectorHost& host_;
    base::Logger& log_;
    base::LogLimit said_of_strangers_;
    std::vector<Attempt> attempts_;
    base::Nanoseconds next_expiry_ = never;
    bool leaving_ = false;

    // Links of a rail that others asked for and that wait for their proof: as many as processes of a large job that all begin
    // at once, each of which is done within a round trip.
    static constexpr std::size_t most_unproven = 512;
    // ... of one process between two rails.
    static constexpr std::size_t most_of_a_pair = 4;
    // However patient we are with those that we connect to: nobody holds a link for longer without a proof.
    static constexpr base::Nanoseconds longest_proof = 4 * base::second;
    static constexpr auto never = base::never;
};

}  // namespace railmux::rails

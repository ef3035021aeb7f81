// Sender: the way of a message out. In order of the calls, each message goes eagerly (its payload travels with the header)
// or by rendezvous (the header asks, the receiver says where to, the bytes follow over all links), as credit allows. Of the
// latter the first bytes may go right behind the header (inlined), so that the network does not stand idle until the answer; or
// all of them, and there is none.
//
// Flow control: a message costs credit until the receiver's application has taken it. When the eager window is used up,
// further messages go by rendezvous, which costs the receiver no memory but a header; so an unexpected flood stops
// growing while a receive for a later message still finds it. When even the headers are too many, messages wait here.
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to its operations, the rail manager and bulk.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/in_line.hpp"
#include "messaging/bulk_out.hpp"
#include "messaging/bundle.hpp"
#include "messaging/lasting_regions.hpp"
#include "messaging/operation.hpp"
#include "messaging/wire.hpp"
#include "rails/rail_manager.hpp"

namespace railmux::messaging {

class Sender final : private BulkOut::Owner {
public:
    struct Options {
        std::size_t eager_max = 16 * 1024;
        bool eager_by_model = true;           // it is not set: what is larger may go in several frames
        std::uint32_t eager_window = 16384;   // credit units
        std::uint32_t header_window = 65536;  // credit units beyond, for headers only
        Scheme scheme = Scheme::automatic;
        Inlining inlining = Inlining::automatic;
    };

    Sender(Options options, Operations& operations, rails::RailManager& rails, BulkOut& bulk,
           const LastingRegions& lasting);

    /// What a message may wait for.
    enum class Leaving : std::uint8_t {
        at_once,      // nothing: the rails are flushed next
        with_others,  // the next flush, if its rail sends several for less
        bundled,      // the same, or close_bundles: it may share a frame
    };
    /// Sends a message now, if it goes eagerly and nothing is in its way (eager.hpp): then it is over, and `sent` says over
    /// which rails, as bits.
    [[nodiscard]] inline bool send_now(std::uint32_t peer, Tag tag, ConstBuffer data, base::Nanoseconds now,
                                       Leaving leaving, std::uint64_t& sent);
    /// Hands over what waits in bundles.
    void close_bundles(base::Nanoseconds now) {
        ++burst_;
        if (!bundled_.empty()) close_all(now);
    }
    /// Whether there may be one.
    [[nodiscard]] bool any_bundle() const noexcept { return !bundled_.empty(); }
    /// Sends now or as soon as it can; the operation's peer and tag are set.
    void start(Operation& operation, base::Nanoseconds now, bool unaccompanied);
    /// Tries again what waits for this peer.
    void resume(std::uint32_t peer, base::Nanoseconds now);
    void peer_gone(std::uint32_t peer, ErrorCode code);

    /// How many of the first bytes of a message that does not go eagerly go ahead of the answer, or, if it is all, instead of
    /// one. If there is no other transfer, nothing else uses the network meanwhile: they cost both sides a copy, and save the
    /// time that they take, or that the answer takes.
    [[nodiscard]] std::uint32_t unasked(std::uint32_t peer, std::uint64_t bytes, base::Nanoseconds now);

    /// Whether something waits for room towards this peer.
    [[nodiscard]] bool busy(std::uint32_t peer) const noexcept;

private:
    struct Flow {  // towards one peer
        OperationQueue waiting;
        std::uint32_t charged = 0;  // credit units, ever
        Bundle bundle;              // goes before anything else does
        bool bundled = false;       // listed
        std::uint32_t burst = 0;    // in which the last message went this way
    };

    [[nodiscard]] Flow& flow_to(std::uint32_t peer) {
        if (peer < flows_.size() && flows_[peer] != nullptr) [[likely]]
            return *flows_[peer];
        return new_flow(peer);
    }
    [[nodiscard]] Flow& new_flow(std::uint32_t peer);
    [[nodiscard]] bool try_send(Operation& operation, Flow& flow, rails::Conversation& talk, base::Nanoseconds now,
                                bool unaccompanied);
    struct Eager {
        std::uint32_t peer;
        Tag tag;
        std::size_t bytes;
        bool unaccompanied;
    };
    [[nodiscard]] bool goes_eagerly(const Operation& operation, const rails::Conversation& talk) const;
    template <typename Fill>
    [[nodiscard]] RAILMUX_IN_LINE bool try_eager(const Eager& message, Flow& flow, rails::Conversation& talk,
                                                 base::Nanoseconds now, std::uint64_t& sent, Fill fill);
    [[nodiscard]] inline bool try_bundle(std::uint32_t peer, Tag tag, ConstBuffer data, Flow& flow,
                                         base::Nanoseconds now, const rails::Conversation& talk);
    [[gnu::noinline]] void begin_bundle(std::uint32_t peer, Flow& flow, base::Nanoseconds now);
    [[gnu::noinline]] void close_bundle(std::uint32_t peer, Flow& flow, base::Nanoseconds now);
    [[gnu::noinline]] void close_all(base::Nanoseconds now);
    /// What goes right behind an announcement, how many links there are for it, and whether it goes by one call.
    struct Ahead {
        std::uint32_t bytes = 0;
        std::uint32_t links = 1;
        bool at_once = false;
    };
    class Parts;
    void send_rts(Operation& operation, Flow& flow, Ahead ahead, base::Nanoseconds now);
    void send_parts(Operation& operation, Parts& parts, base::Nanoseconds now);
    [[nodiscard]] bool offers_gets(const Operation& operation) const;
    void bulk_sent(std::uint64_t operation, ErrorCode code, std::uint64_t rails) override;

    Options options_;
    Operations& operations_;
    rails::RailManager& rails_;
    BulkOut& bulk_;
    const LastingRegions& lasting_;
    std::vector<std::unique_ptr<Flow>> flows_;  // by peer
    std::vector<std::uint32_t> bundled_;        // peers for whom there may be a bundle
    std::uint32_t burst_ = 1;                   // counts what leaves together
};

}  // namespace railmux::messaging

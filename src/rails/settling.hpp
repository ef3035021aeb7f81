// Settling: what had come over a link that is over. What it had carried goes out again, but for puts: a second one to the same
// place would write over bytes that have been checked and counted, and might be corrupted, too. So they are parked until the
// other side says that the link is over at its end, where nothing more can come then, and what had come by then. The same
// without checksums where rails end links for wrong puts: if all had come the region is closed, and what is put again would
// cost one link after the other.
//
// Question and answer have no places in the window: what waits for them may be what keeps it from moving, and it would be full
// after so many losses. They are lost with the link that they go over, and so all is asked again whenever a link is over or up.
//
// Threads: one engine at a time.
// Lifetime: owned by the rail manager; refers to its rails, links and peers. What is to be settled with a peer belongs to the
// conversation with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/clock.hpp"
#include "rails/ack_route.hpp"
#include "rails/frame_pool.hpp"
#include "rails/link.hpp"
#include "rails/link_host.hpp"
#include "rails/peer.hpp"
#include "rails/rail_set.hpp"

namespace railmux::rails {

class Settling {
public:
    Settling(const RailSet& rails, PeerTable& peers, LinkTable& links, FramePool& pool, AckRoute& route, LinkHost& host)
        : rails_(rails), peers_(peers), links_(links), pool_(pool), route_(route), host_(host) {}

    // --- What is ours ------------------------------------------------------------------------------------------------

    /// Of a frame that is on no link any more, as the one that it went to is over here. True: it waits until that is settled.
    [[nodiscard]] bool park(const Link& link, Frame& frame) noexcept;
    /// Frames are parked for that link.
    static void parked_for(Conversation& talk, const Link& link) { talk.settling.push_back(link.nonce); }
    /// A link is over: a question may have been lost with it, or an answer.
    void ask(const Conversation& talk, base::Nanoseconds now);
    /// A link is up: first of all what helps parked frames on, as it may not live for as long as a question and its answer take
    /// behind all else. So answers are given once more, too, if the link is over that they went by: they may not have been
    /// heard.
    void link_up(Conversation& talk, base::Nanoseconds now);

    /// An answer: these links are over there, and what had come by then.
    struct Answer {
        std::span<const std::byte> nonces;
        std::uint32_t ack = 0;
        std::span<const std::byte> sack;
    };
    /// Nothing: that is malformed.
    [[nodiscard]] static std::optional<Answer> parse(std::span<const std::byte> body) noexcept;
    /// There may be several answers, of which the first is as good as any. True: it was one, and no frame is to be parked any
    /// longer; until all is settled they are, as they do not tell for which of the links.
    [[nodiscard]] bool answered(Conversation& talk, const Answer& answer, base::Nanoseconds now);

    // --- What is asked of us -----------------------------------------------------------------------------------------

    /// A question that came over that link. False: it is malformed.
    [[nodiscard]] bool asked(Link& link, std::span<const std::byte> body, base::Nanoseconds now);
    /// A link of the peer, with which there is a session, is over here: nothing more comes over it.
    void link_over(std::uint32_t peer, std::uint64_t nonce, base::Nanoseconds now);

private:
    [[nodiscard]] bool is_over(std::uint32_t peer, const Conversation::Asked& asked, base::Nanoseconds now);
    void answer(Conversation& talk, std::uint64_t by, std::span<const std::uint64_t> nonces, base::Nanoseconds now);
    void send_answer(const Conversation& talk, Link& link, std::span<const std::uint64_t> nonces,
                     base::Nanoseconds now);
    [[nodiscard]] bool puts_end_links() const noexcept;

    const RailSet& rails_;
    PeerTable& peers_;
    LinkTable& links_;
    FramePool& pool_;
    AckRoute& route_;
    LinkHost& host_;
};

}  // namespace railmux::rails

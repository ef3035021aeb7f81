// Connector: a link that has been asked for or accepted, until both sides have proved that they know the job key.
#include <algorithm>

#include "rails/connector.hpp"
#include "rails/seal.hpp"

namespace railmux::rails {

namespace {

ErrorCode code_of(Verdict verdict) noexcept {
    switch (verdict) {
        case Verdict::wrong_version: return ErrorCode::wrong_version;
        case Verdict::wrong_job:
        case Verdict::wrong_key: return ErrorCode::wrong_key;
        case Verdict::leaving: return ErrorCode::peer_left;
        default: return ErrorCode::unreachable;
    }
}

}  // namespace

void Connector::came_up(Link& link, std::span<const std::byte> reply, base::Nanoseconds now) {
    if (link.state == LinkState::accepting) {
        link.state = LinkState::proving;
        return;
    }
    if (link.state != LinkState::connecting) return;
    const auto parsed = parse_reply(reply);
    auto verdict = Verdict::accepted;
    if (!parsed || parsed->version != wire_version) {
        verdict = Verdict::wrong_version;
    } else if (!reply_proves_key(options_.key, link.setup->hello, reply)) {
        verdict = Verdict::wrong_key;
    } else if (parsed->from.instance != peers_[link.peer].instance) {
        verdict = Verdict::wrong_process;
    }
    if (verdict != Verdict::accepted) {
        pair_failed(link, code_of(verdict), explain(verdict, reply), now);
        link.state = LinkState::closing;
        rails_[link.rail].rail->disconnect(link.id);
        return;
    }
    std::copy(reply.begin(), reply.end(), link.setup->reply.begin());
    // Another rail of the peer has that address now: this is a link, but not the one that was asked for.
    if (link.retried && parsed->rail != link.remote_rail) {
        host_.pair_failed(link, {}, false, now);
        link.stands_in = true;
    }
    link.remote_rail = parsed->rail;
    link.checksum = parsed->checksum;
    const auto peer = link.peer;
    if (!link.comes_back() && redundant(peer, link.rail, link.remote_rail)) {
        disconnect(link, now);
        return;
    }
    send_proof(link);
    link.nonce = parse_hello(link.setup->hello)->nonce;
    link.setup.reset();
    const bool retried = link.retried;
    host_.link_proven(link, now);
    if (!retried) pair_done(peer, now);
}

void Connector::send_proof(Link& link) {
    const auto proof = make_proof(options_.key, link.setup->hello, link.setup->reply);
    Frame* frame = pool_.take(FrameHeader::size + proof.size());
    frame->type = FrameType::proof;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + proof.size());
    frame->acked = true;  // nobody acknowledges it: it is released when it is done
    write_header(frame->data(), {.type = FrameType::proof});
    std::copy(proof.begin(), proof.end(), frame->data() + FrameHeader::size);
    frame->queued = true;
    link.queued_bytes += frame->bytes;
    link.outbox.push(frame);
}

void Connector::received(Link& link, std::span<const std::byte> bytes, base::Nanoseconds now) {
    const auto opened = link.checksum ? open_sealed(bytes) : Opened{.frame = bytes};
    const auto frame = opened ? opened->frame : std::span<const std::byte>{};
    const auto header = parse_header(frame);
    if (link.state != LinkState::proving || !header || header->type != FrameType::proof ||
        !proof_holds(options_.key, link.setup->hello, link.setup->reply, frame.subspan(FrameHeader::size))) {
        said_of_strangers_.warning("rail {}: {} did not prove that it knows the job key{}; closed",
                                   rails_[link.rail].traits().name, link.label,
                                   opened ? "" : ": what came is corrupted (its checksum is wrong)");
        disconnect(link, now);
        return;
    }
    // This is no replay, so what its hello asked for may be done now; if it still may: sessions have gone on since.
    const auto hello = *parse_hello(link.setup->hello);
    const auto verdict = judge(link.rail, hello, link.peer, now);
    if (verdict != Verdict::accepted) {
        log_.info("rail {}: {} is too late, closed: {}", rails_[link.rail].traits().name, link.label,
                  explain(verdict, link.setup->hello));
        disconnect(link, now);
        return;
    }
    if (link.peer == no_peer) link.peer = peers_.of_instance(hello.from.instance, hello.from.rank);
    host_.follow_session(link.peer, hello.from.instance, hello.epoch);
    settle_tie(link, now);
    link.setup.reset();
    host_.link_proven(link, now);
}

void Connector::went_down(Link& link, const transports::Event& event, base::Nanoseconds now) {
    if (link.state != LinkState::connecting) return;
    const auto reply = parse_reply(event.data);
    if (!reply) {
        pair_failed(link, event.code, event.text, now);
        return;
    }
    if (reply->verdict == Verdict::stale_session && reply_proves_key(options_.key, link.setup->hello, event.data)) {
        // Our session is the one that is refused: no link that is connecting outlives the session it was made for.
        link.state = LinkState::closing;
        host_.follow_session(link.peer, peers_[link.peer].instance, reply->epoch);
    } else if (reply->verdict == Verdict::duplicate) {
        pair_done(link, now);
    } else {
        const bool leaves = reply->verdict == Verdict::leaving && reply->from.instance == peers_[link.peer].instance &&
                            reply_proves_key(options_.key, link.setup->hello, event.data);
        pair_failed(link, code_of(reply->verdict), explain(reply->verdict, event.data), now);
        link.state = LinkState::closing;  // or it would be ended once more, with the session
        if (leaves) host_.peer_leaves(link.peer, now);
    }
}

}  // namespace railmux::rails

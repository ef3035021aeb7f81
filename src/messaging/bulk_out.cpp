#include "messaging/bulk_out.hpp"

#include <algorithm>

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;

// --- Beginning -------------------------------------------------------------------------------------------------------

BulkOut::Transfer& BulkOut::begin(const Source& source) {
    if (source.peer >= flows_.size()) flows_.resize(source.peer + 1);
    if (flows_[source.peer] == nullptr) flows_[source.peer] = std::make_unique<Flow>();
    ++flows_[source.peer]->transfers;
    ++open_;
    Transfer& transfer = transfers_.take();
    transfer.cleared = transfer.denied = false;
    transfer.code = transfer.gone = ErrorCode::ok;
    transfer.source = source;
    transfer.wanted = transfer.granted = transfer.got = 0;
    transfer.under_way = 0;
    transfer.unplanned = 0;
    transfer.rails = 0;
    transfer.shares.clear();
    transfer.keys.clear();
    transfer.target.keys = {};
    return transfer;
}

Handle BulkOut::announce(const Source& source) { return handle_of(begin(source)); }

bool BulkOut::forget(Handle handle) noexcept {
    Transfer* transfer = transfers_.find(handle);
    if (transfer == nullptr || transfer->cleared) return false;
    remove(*transfer);
    return true;
}

Handle BulkOut::offer(const Source& source) {
    Transfer& transfer = begin(source);
    const auto& piece = source.pieces.front();
    rails_.regions().open_source(source.peer, {piece.data, piece.size}, transfer.offered);
    keys_.clear();
    for (const auto& open : transfer.offered) {
        keys_.push_back({.rail = static_cast<std::uint8_t>(open.rail), .key = open.region.key});
    }
    return handle_of(transfer);
}

/// Whether the peer may have so many more of the bytes that it says it wants in all.
bool BulkOut::wants(Transfer& transfer, std::uint64_t wanted, std::uint64_t more) noexcept {
    if (!std::exchange(transfer.cleared, true)) {
        transfer.wanted = wanted;
        transfer.granted = std::min<std::uint64_t>(transfer.source.inlined, wanted);
    }
    return wanted == transfer.wanted && wanted <= transfer.source.bytes &&
           more <= wanted - transfer.granted - transfer.got;
}

bool BulkOut::on_cts(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto cts = parse_cts(body, keys_);
    if (!cts) return false;
    Transfer* transfer = transfers_.find(cts->sender);
    if (transfer == nullptr || transfer->source.peer != peer) return false;
    const bool again = transfer->cleared;
    if (!wants(*transfer, cts->wanted, cts->bytes)) return false;
    // Only of what it may get it may ask for parts.
    const bool all = cts->bytes == cts->wanted - transfer->granted;
    if (transfer->offered.empty() ? again || !all : again && cts->bytes == 0) return false;
    if (transfer->source.message) flows_[peer]->would_get = cts->would_get;
    transfer->receiver = cts->receiver;
    if (cts->leaves) transfer->code = ErrorCode::peer_left;
    if (cts->bytes > 0) put(*transfer, cts->offset, cts->bytes, keys_, now);
    end_if_over(*transfer);
    return true;
}

bool BulkOut::on_fin_ack(std::uint32_t peer, std::span<const std::byte> body) {
    const auto fin = parse_fin_ack(body);
    if (!fin) return false;
    Transfer* transfer = transfers_.find(fin->sender);
    if (transfer == nullptr || transfer->source.peer != peer || transfer->offered.empty()) return false;
    if (!wants(*transfer, fin->wanted, fin->bytes)) return false;
    transfer->got += fin->bytes;
    for (const auto& open : transfer->offered) transfer->rails |= std::uint64_t{1} << open.rail;
    // Of several nobody here knows which brought how much.
    if (transfer->offered.size() == 1) rails_.note_got(peer, transfer->offered.front().rail, fin->bytes);
    end_if_over(*transfer);
    return true;
}

void BulkOut::send(const Source& source, Handle receiver, std::vector<rails::BulkTarget::Key>& keys,
                   base::Nanoseconds now) {
    Transfer& transfer = begin(source);
    transfer.receiver = receiver;
    if (wants(transfer, source.bytes, source.bytes) && source.bytes > 0) put(transfer, 0, source.bytes, keys, now);
    end_if_over(transfer);
}

void BulkOut::put(Transfer& transfer, std::uint64_t offset, std::uint64_t bytes,
                  std::vector<rails::BulkTarget::Key>& keys, base::Nanoseconds now) {
    const auto peer = transfer.source.peer;
    transfer.granted += bytes;
    if (transfer.keys.empty()) {  // those of later grants are the same, or else frames in outboxes would lose theirs
        std::swap(transfer.keys, keys);
        transfer.target.keys = transfer.keys;
    }
    use_reserves(transfer);
    plan(transfer, offset, bytes, now);
    auto& ready = flows_[peer]->ready;
    if (transfer.unplanned == 0) ready.push_back(transfer.index);
    transfer.unplanned += bytes;
    rails_.note_bulk(peer, token_of(transfer), bytes, now);
    rails_.offer_bulk(peer);
}

void BulkOut::plan(Transfer& transfer, std::uint64_t offset, std::uint64_t bytes, base::Nanoseconds now) {
    const auto add = [&](std::uint32_t rail, std::uint64_t some) {
        transfer.shares.push_back({.rail = rail, .begin = offset, .end = offset + some});
        offset += some;
        bytes -= some;
    };
    if (!rails_.plan().replans()) {
        rails_.plan().split(transfer.source.peer, transfer.target, bytes, now, shares_);
        for (const auto& share : shares_) add(share.rail, share.bytes);
    }
    if (bytes > 0) add(any_rail, bytes);
}

bool BulkOut::takes(const Transfer& transfer, std::uint8_t remote_rail) noexcept {
    const auto* key = transfer.target.find(remote_rail);
    return key != nullptr && !key->reserve;
}

/// If no link is left that the other keys are for.
void BulkOut::use_reserves(Transfer& transfer) noexcept {
    if (rails_.plan().reaches(transfer.source.peer, transfer.target)) return;
    for (auto& key : transfer.keys) key.reserve = false;
}

// --- Under way -------------------------------------------------------------------------------------------------------

std::uint64_t BulkOut::left(std::uint32_t peer, std::uint8_t remote_rail) noexcept {
    if (!busy(peer)) return 0;
    std::uint64_t left = 0;
    for (const auto index : flows_[peer]->ready) {
        const Transfer& transfer = transfers_.at(index);
        if (takes(transfer, remote_rail)) left += transfer.unplanned;
    }
    return left;
}

Frame* BulkOut::next(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, std::uint64_t most) {
    if (!busy(peer)) return nullptr;
    auto& ready = flows_[peer]->ready;
    for (auto place = ready.begin(); place != ready.end(); ++place) {
        Transfer& transfer = transfers_.at(*place);
        if (!takes(transfer, remote_rail)) continue;
        for (auto& share : transfer.shares) {
            if (share.begin == share.end || (share.rail != rail && share.rail != any_rail)) continue;
            Frame* frame = cut(transfer, share, rail, most);
            if (transfer.unplanned == 0) ready.erase(place);
            return frame;
        }
    }
    return nullptr;
}

Frame* BulkOut::cut(Transfer& transfer, Share& share, std::uint32_t rail, std::uint64_t most) {
    Frame* frame = rails_.pool().take(FrameHeader::size + FinBody::size);
    frame->type = FrameType::fin;
    frame->token = token_of(transfer);
    frame->target = &transfer.target;
    frame->put_offset = share.begin;
    frame->registered_with = static_cast<std::uint8_t>(rail);
    std::uint64_t room = std::min(share.end - share.begin, most);
    const auto pieces = transfer.source.pieces;
    while (share.piece_offset + pieces[share.piece].size <= share.begin)
        share.piece_offset += pieces[share.piece++].size;
    std::uint64_t skip = share.begin - share.piece_offset;
    std::uint64_t bytes = 0;
    const auto use = use_for(transfer);
    for (auto at = share.piece; room > 0 && at < pieces.size() && frame->piece_count < Frame::max_pieces; ++at) {
        const auto& piece = pieces[at];
        const auto wanted = std::min<std::uint64_t>(piece.size - skip, room);
        auto part = wanted;
        const auto region = part > 0 ? transfer.regions.covering(use, rail, piece, skip, part) : 0;
        if (part > 0) frame->pieces[frame->piece_count++] = {piece.data + skip, part, region};
        room -= part;
        bytes += part;
        skip = 0;
        if (part < wanted) break;  // the rest lies in another region
    }
    write_fin(frame->data() + FrameHeader::size, {transfer.receiver, share.begin, bytes});
    frame->bytes = FrameHeader::size + FinBody::size;
    if (transfer.denied) {
        frame->piece_count = 0;
        frame->flags = rails::frame_flag::denied;
    } else {
        frame->payload = static_cast<std::uint32_t>(bytes);
        frame->aux = frame->payload;
    }
    share.begin += bytes;
    if (share.begin == share.end) frame->flags |= rails::frame_flag::ack_now;
    transfer.unplanned -= bytes;
    ++transfer.under_way;
    return frame;
}

BulkOut::Transfer* BulkOut::of_token(std::uint64_t token) noexcept {
    const auto value = token - 1;
    return transfers_.find({static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)});
}

void BulkOut::released(const Frame& frame) {
    Transfer* transfer = of_token(frame.token);
    if (transfer == nullptr) return;
    --transfer->under_way;
    if (!frame.abandoned) ++flows_[transfer->source.peer]->taken;
    if (frame.abandoned && transfer->code == ErrorCode::ok) transfer->code = transfer->gone;
    for (const auto& piece : frame.put()) {
        transfer->regions.release(use_for(*transfer), frame.registered_with, piece.data);
    }
    transfer->rails |= std::uint64_t{1} << frame.rail;
    end_if_over(*transfer);
}

void BulkOut::denied(std::uint64_t token) noexcept {
    if (Transfer* transfer = of_token(token); transfer != nullptr) transfer->denied = true;
}

void BulkOut::link_lost(std::uint32_t peer, std::uint32_t rail) noexcept {
    if (!busy(peer)) return;
    for (const auto index : flows_[peer]->ready) {
        Transfer& transfer = transfers_.at(index);
        for (auto& share : transfer.shares) {
            if (share.rail == rail) share.rail = any_rail;
        }
        use_reserves(transfer);
    }
}

// --- The end ---------------------------------------------------------------------------------------------------------

/// All that the peer wants is in place, or has been got; or the peer is gone, and no rail reads it any more.
void BulkOut::end_if_over(Transfer& transfer) {
    if (transfer.unplanned > 0 || transfer.under_way > 0) return;
    const bool all = transfer.granted + transfer.got == transfer.wanted;
    if (all || transfer.code != ErrorCode::ok) end(transfer, transfer.code);
}

void BulkOut::end(Transfer& transfer, ErrorCode code) {
    const auto source = transfer.source;
    const auto rails = transfer.rails;
    remove(transfer);
    source.owner->bulk_sent(source.cookie, code, rails);
}

void BulkOut::remove(Transfer& transfer) noexcept {
    auto& flow = *flows_[transfer.source.peer];
    transfer.regions.drop(use_for(transfer));
    rails_.regions().close(transfer.offered);  // from here on nobody reads it
    --flow.transfers;
    --open_;
    std::erase(flow.ready, transfer.index);
    transfers_.give(transfer);
}

void BulkOut::peer_gone(std::uint32_t peer, ErrorCode code) {
    transfers_.for_each([&](Transfer& transfer) {
        if (transfer.source.peer != peer || transfer.code != ErrorCode::ok) return;
        if (transfer.under_way == 0) return end(transfer, code);
        // The end comes when no rail reads it any more. If all of it is on its way, acknowledgements may be, too: whoever goes
        // may do so as soon as he has it.
        const bool all = transfer.cleared && transfer.granted + transfer.got == transfer.wanted;
        if (all && transfer.unplanned == 0) {
            transfer.gone = code;
            return;
        }
        transfer.code = code;
        transfer.unplanned = 0;
        std::erase(flows_[peer]->ready, transfer.index);
    });
}

}  // namespace railmux::messaging

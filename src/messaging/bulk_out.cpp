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
    Transfer& transfer = transfers_.take();
    transfer.cleared = transfer.denied = false;
    transfer.code = ErrorCode::ok;
    transfer.source = source;
    transfer.under_way = 0;
    transfer.rails = 0;
    transfer.shares.clear();
    return transfer;
}

Handle BulkOut::announce(const Source& source) { return handle_of(begin(source)); }

bool BulkOut::forget(Handle handle) noexcept {
    Transfer* transfer = transfers_.find(handle);
    if (transfer == nullptr || transfer->cleared) return false;
    remove(*transfer);
    return true;
}

bool BulkOut::on_cts(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto cts = parse_cts(body, keys_);
    if (!cts) return false;
    Transfer* transfer = transfers_.find(cts->sender);
    if (transfer == nullptr || transfer->cleared || transfer->source.peer != peer ||
        cts->bytes > transfer->source.bytes) {
        return false;
    }
    clear(*transfer, cts->receiver, cts->bytes, keys_, now);
    return true;
}

void BulkOut::send(const Source& source, Handle receiver, std::vector<rails::BulkTarget::Key>& keys,
                   base::Nanoseconds now) {
    clear(begin(source), receiver, source.bytes, keys, now);
}

void BulkOut::clear(Transfer& transfer, Handle receiver, std::uint64_t bytes, std::vector<rails::BulkTarget::Key>& keys,
                    base::Nanoseconds now) {
    transfer.cleared = true;
    transfer.receiver = receiver;
    transfer.wanted = bytes;
    transfer.unplanned = bytes;
    if (transfer.wanted == 0) {
        end(transfer, ErrorCode::ok);
        return;
    }
    const auto peer = transfer.source.peer;
    std::swap(transfer.keys, keys);
    transfer.target.keys = transfer.keys;
    plan(transfer, now);
    flows_[peer]->ready.push_back(transfer.index);
    rails_.note_bulk(peer, token_of(transfer), transfer.wanted, now);
    rails_.offer_bulk(peer, now);
}

void BulkOut::plan(Transfer& transfer, base::Nanoseconds now) {
    if (rails_.replans()) {
        transfer.shares.push_back({.rail = any_rail, .begin = 0, .end = transfer.wanted});
        return;
    }
    rails_.plan_bulk(transfer.source.peer, transfer.target, transfer.wanted, now, shares_);
    std::uint64_t at = 0;
    for (const auto& share : shares_) {
        transfer.shares.push_back({.rail = share.rail, .begin = at, .end = at + share.bytes});
        at += share.bytes;
    }
    if (transfer.shares.empty()) transfer.shares.push_back({.rail = any_rail, .begin = 0, .end = transfer.wanted});
}

// --- Under way -------------------------------------------------------------------------------------------------------

std::uint64_t BulkOut::left(std::uint32_t peer, std::uint8_t remote_rail) noexcept {
    if (!busy(peer)) return 0;
    std::uint64_t left = 0;
    for (const auto index : flows_[peer]->ready) {
        const Transfer& transfer = transfers_.at(index);
        if (transfer.target.key_for(remote_rail) != nullptr) left += transfer.unplanned;
    }
    return left;
}

Frame* BulkOut::next(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, std::uint64_t most) {
    if (!busy(peer)) return nullptr;
    auto& ready = flows_[peer]->ready;
    for (auto place = ready.begin(); place != ready.end(); ++place) {
        Transfer& transfer = transfers_.at(*place);
        if (transfer.target.key_for(remote_rail) == nullptr) continue;
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
    for (const auto& piece : frame.put()) {
        transfer->regions.release(use_for(*transfer), frame.registered_with, piece.data);
    }
    transfer->rails |= std::uint64_t{1} << frame.rail;
    if (transfer->unplanned == 0 && transfer->under_way == 0) end(*transfer, transfer->code);
}

void BulkOut::denied(std::uint64_t token) noexcept {
    if (Transfer* transfer = of_token(token); transfer != nullptr) transfer->denied = true;
}

void BulkOut::link_lost(std::uint32_t peer, std::uint32_t rail) noexcept {
    if (!busy(peer)) return;
    for (const auto index : flows_[peer]->ready) {
        for (auto& share : transfers_.at(index).shares) {
            if (share.rail == rail) share.rail = any_rail;
        }
    }
}

// --- The end ---------------------------------------------------------------------------------------------------------

void BulkOut::end(Transfer& transfer, ErrorCode code) {
    const auto source = transfer.source;
    const auto rails = transfer.rails;
    remove(transfer);
    source.owner->bulk_sent(source.cookie, code, rails);
}

void BulkOut::remove(Transfer& transfer) noexcept {
    auto& flow = *flows_[transfer.source.peer];
    transfer.regions.drop(use_for(transfer));
    --flow.transfers;
    std::erase(flow.ready, transfer.index);
    transfers_.give(transfer);
}

void BulkOut::peer_gone(std::uint32_t peer, ErrorCode code) {
    transfers_.for_each([&](Transfer& transfer) {
        if (transfer.source.peer != peer || transfer.code != ErrorCode::ok) return;
        if (transfer.under_way == 0) return end(transfer, code);
        transfer.code = code;  // the end comes when no rail reads it any more
        transfer.unplanned = 0;
        std::erase(flows_[peer]->ready, transfer.index);
    });
}

}  // namespace railmux::messaging

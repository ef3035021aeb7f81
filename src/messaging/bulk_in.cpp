#include "messaging/bulk_in.hpp"

#include <algorithm>
#include <new>

#include "base/bytes.hpp"
#include "messaging/operation.hpp"

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;
using transports::WorkStatus;

/// Of what was being got when its context goes: whoever writes there is awaited when the rails go.
BulkIn::~BulkIn() {
    transfers_.for_each([&](Transfer& transfer) {
        if (transfer.getting > 0 && transfer.bounce != nullptr) left_.push_back(std::move(transfer.bounce));
    });
}

// --- Beginning -------------------------------------------------------------------------------------------------------

/// A transfer of which nothing is open yet; nullptr without memory for it.
BulkIn::Transfer* BulkIn::begin(const Place& place) {
    Transfer& transfer = transfers_.take();
    transfer.closed = transfer.incomplete = transfer.confirmed = transfer.unreadable = false;
    transfer.code = ErrorCode::ok;
    transfer.lacking = ErrorCode::access_denied;
    transfer.place = place;
    transfer.start = place.pieces.front().data;
    transfer.granted = transfer.put = transfer.got = transfer.inlined = 0;
    transfer.getting = 0;
    transfer.unread.clear();
    transfer.offered.clear();
    transfer.source.keys = {};
    if (place.pieces.size() > 1) {
        transfer.bounce.reset(new (std::nothrow) std::byte[place.bytes]);
        transfer.start = transfer.bounce.get();
    }
    if (transfer.start != nullptr) return &transfer;
    transfers_.give(transfer);
    return nullptr;
}

std::optional<Handle> BulkIn::open(const Place& place) {
    Transfer* transfer = begin(place);
    if (transfer == nullptr) return std::nullopt;
    if (!open_regions(*transfer)) {
        forget(handle_of(*transfer));
        return std::nullopt;
    }
    transfer->granted = place.bytes;
    return handle_of(*transfer);
}

/// To puts of the peer, all of it; keys_ receives the keys.
bool BulkIn::open_regions(Transfer& transfer) {
    const auto& place = transfer.place;
    if (transfer.regions.empty() &&
        !rails_.regions().open(place.peer, {transfer.start, static_cast<std::size_t>(place.bytes)}, transfer.regions)) {
        return false;
    }
    keys_.clear();
    for (const auto& open : transfer.regions) {
        keys_.push_back(
            {.rail = static_cast<std::uint8_t>(open.rail),
             .key = open.region.key,
             .reserve = !transfer.unreadable && rails_.plan().can_get(place.peer, transfer.source, open.rail)});
    }
    return true;
}

void BulkIn::answer(std::uint32_t peer, Handle sender, Handle opened, std::uint64_t bytes, base::Nanoseconds now) {
    send_cts(peer, {.sender = sender, .receiver = opened, .wanted = bytes, .bytes = bytes}, keys_, now);
}

void BulkIn::refuse(std::uint32_t peer, Handle sender, base::Nanoseconds now) {
    send_cts(peer, {.sender = sender}, {}, now);
}

void BulkIn::refuse_for_good(std::uint32_t peer, Handle sender, base::Nanoseconds now) {
    send_cts(peer, {.sender = sender, .leaves = true}, {}, now);
}

void BulkIn::send_cts(std::uint32_t peer, const CtsBody& cts, std::span<const rails::BulkTarget::Key> keys,
                      base::Nanoseconds now) {
    const auto size = FrameHeader::size + CtsBody::size + keys.size() * bulk_key_size;
    Frame* frame = rails_.pool().take(size);
    frame->type = FrameType::cts;
    frame->bytes = static_cast<std::uint32_t>(size);
    write_cts(frame->data() + FrameHeader::size, cts, keys);
    rails_.send(peer, frame, now);
}

std::optional<Handle> BulkIn::take(const Place& place, const Offer& offer, base::Nanoseconds now) {
    Transfer* transfer = begin(place);
    if (transfer == nullptr) {
        if (offer.asks) refuse(place.peer, offer.sender, now);
        return std::nullopt;
    }
    const auto handle = handle_of(*transfer);
    if (place.bytes <= offer.inlined) {
        if (offer.asks) refuse(place.peer, offer.sender, now);  // nothing but that
        return handle;
    }
    transfer->sender = offer.sender;
    std::uint64_t put_from = offer.inlined;
    if (scheme_ != Scheme::write && !offer.keys.empty()) {
        transfer->offered.assign(offer.keys.begin(), offer.keys.end());
        transfer->source.keys = transfer->offered;
        put_from += rails_.plan().split_gets(place.peer, transfer->source, place.bytes - offer.inlined, now);
    }
    if (put_from == offer.inlined) transfer->source.keys = {};
    if (put_from < place.bytes && !grant(*transfer, {put_from, place.bytes}, now)) {
        if (put_from == offer.inlined) {
            refuse(place.peer, offer.sender, now);
            forget(handle);
            return std::nullopt;
        }
        put_from = place.bytes;  // nothing can be put here
    }
    if (put_from == offer.inlined) return handle;
    add_unread(*transfer, {offer.inlined, put_from});
    rails_.offer_gets(place.peer, now);
    return handle;
}

void BulkIn::add_inlined(Handle handle, std::uint64_t offset, std::span<const std::byte> bytes) {
    Transfer* transfer = transfers_.find(handle);
    if (transfer == nullptr || transfer->code != ErrorCode::ok || offset >= transfer->place.bytes) return;
    const auto wanted = bytes.first(std::min<std::size_t>(bytes.size(), transfer->place.bytes - offset));
    base::copy(transfer->start + offset, wanted.data(), wanted.size());
    transfer->inlined += wanted.size();
    end_if_over(*transfer);
}

/// Asks the peer to put that part. False when no rail can be opened for it.
bool BulkIn::grant(Transfer& transfer, const Range& range, base::Nanoseconds now) {
    if (!open_regions(transfer)) return false;
    const auto& place = transfer.place;
    const auto bytes = range.end - range.begin;
    transfer.granted += bytes;
    const bool would_get = scheme_ == Scheme::automatic && place.pieces.size() == 1 &&
                           rails_.plan().getting_saves(place.peer) && lasting_.covers({transfer.start, place.bytes});
    send_cts(place.peer,
             {.sender = transfer.sender,
              .receiver = handle_of(transfer),
              .wanted = place.bytes,
              .offset = range.begin,
              .bytes = bytes,
              .would_get = would_get},
             keys_, now);
    return true;
}

// --- Put by the peer -------------------------------------------------------------------------------------------------

void BulkIn::close(Handle handle) noexcept {
    Transfer* transfer = transfers_.find(handle);
    if (transfer == nullptr) return;
    transfer->closed = true;
    rails_.regions().close(transfer->regions);
}

void BulkIn::forget(Handle handle) noexcept {
    Transfer* transfer = transfers_.find(handle);
    if (transfer == nullptr) return;
    rails_.regions().close(transfer->regions);
    transfer->bounce.reset();
    transfers_.give(*transfer);
}

/// The transfer of which the fin closes a part.
BulkIn::Transfer* BulkIn::find(std::uint32_t peer, const FinBody& fin) noexcept {
    Transfer* transfer = transfers_.find(fin.receiver);
    if (transfer == nullptr || transfer->place.peer != peer) return nullptr;
    const auto wanted = transfer->place.bytes;
    return fin.offset > wanted || fin.bytes > wanted - fin.offset ? nullptr : transfer;
}

std::span<const std::byte> BulkIn::closed_by(std::uint32_t peer, std::span<const std::byte> body) noexcept {
    const auto fin = parse_fin(body);
    const auto* transfer = fin ? find(peer, *fin) : nullptr;
    if (transfer == nullptr || transfer->closed) return {};  // closed: its memory may be gone
    return {transfer->start + fin->offset, static_cast<std::size_t>(fin->bytes)};
}

bool BulkIn::on_fin(std::uint32_t peer, const FrameHeader& header, std::span<const std::byte> body) {
    const auto fin = parse_fin(body);
    if (!fin) return false;
    Transfer* transfer = find(peer, *fin);
    if (transfer == nullptr || fin->bytes > transfer->granted - transfer->put) return false;
    transfer->put += fin->bytes;
    transfer->incomplete = transfer->incomplete || transfer->closed || (header.flags & rails::frame_flag::denied) != 0;
    end_if_over(*transfer);
    return true;
}

// --- Got from the peer -----------------------------------------------------------------------------------------------

LocalRegions::Use BulkIn::use_for(const Transfer& transfer) noexcept {
    return {
        .rails = rails_, .lasting = lasting_, .peer = transfer.place.peer, .access = transports::Access::local_write};
}

void BulkIn::add_unread(Transfer& transfer, const Range& range) {
    if (transfer.unread.empty()) reading_.push_back(transfer.index);
    transfer.unread.push_back(range);
}

void BulkIn::drop_unread(Transfer& transfer) noexcept {
    transfer.unread.clear();
    std::erase(reading_, transfer.index);
}

Frame* BulkIn::next_get(std::uint32_t peer, std::uint32_t rail, std::uint8_t remote_rail, std::uint64_t most) {
    const auto place = std::ranges::find_if(reading_, [&](std::uint32_t index) {
        const Transfer& transfer = transfers_.at(index);
        return transfer.place.peer == peer && !transfer.unreadable && transfer.source.find(remote_rail) != nullptr;
    });
    return place == reading_.end() ? nullptr : cut(transfers_.at(*place), rail, most);
}

Frame* BulkIn::cut(Transfer& transfer, std::uint32_t rail, std::uint64_t most) {
    auto& range = transfer.unread.front();
    const transports::Segment whole{transfer.start, static_cast<std::size_t>(transfer.place.bytes)};
    auto bytes = std::min(range.end - range.begin, most);
    const auto region = transfer.regions_here.covering(use_for(transfer), rail, whole, range.begin, bytes);
    Frame* frame = rails_.pool().take(0);
    frame->gets = true;
    frame->token = token_of(transfer);
    frame->target = &transfer.source;
    frame->put_offset = range.begin;
    frame->registered_with = static_cast<std::uint8_t>(rail);
    frame->pieces[0] = {transfer.start + range.begin, static_cast<std::size_t>(bytes), region};
    frame->piece_count = 1;
    frame->payload = static_cast<std::uint32_t>(bytes);
    ++transfer.getting;
    range.begin += bytes;
    if (range.begin == range.end) transfer.unread.erase(transfer.unread.begin());
    if (transfer.unread.empty()) drop_unread(transfer);
    return frame;
}

void BulkIn::on_got(std::uint32_t peer, const Frame& frame, WorkStatus status, base::Nanoseconds now) {
    const auto value = frame.token - 1;  // it is there for as long as something is being got
    Transfer& transfer = transfers_.at(static_cast<std::uint32_t>(value));
    --transfer.getting;
    transfer.regions_here.release(use_for(transfer), frame.registered_with, frame.pieces[0].data);
    if (transfer.code != ErrorCode::ok) {
        if (transfer.getting == 0) end(transfer, transfer.code);
        return;
    }
    if (status == WorkStatus::ok) {
        transfer.got += frame.payload;
        confirm(transfer, now);
        end_if_over(transfer);
        return;
    }
    add_unread(transfer, {frame.put_offset, frame.put_offset + frame.payload});
    if (status != WorkStatus::access_denied) return;  // the end of its link is told, too
    transfer.unreadable = true;
    resume(peer, now);
}

void BulkIn::resume(std::uint32_t peer, base::Nanoseconds now) {
    if (reading_.empty()) return;
    bool any = false;
    for (const auto index : std::vector(reading_)) {
        Transfer& transfer = transfers_.at(index);
        // What is sent for one may bring us here again, and end others.
        if (!transfer.used || transfer.unread.empty() || transfer.place.peer != peer) continue;
        if (!transfer.unreadable && rails_.plan().can_get(peer, transfer.source)) {
            any = true;
        } else if (rails_.connected(peer)) {
            leave_to_peer(transfer, now);
        }
    }
    if (any) rails_.offer_gets(peer, now);
}

/// No link is left over which the rest could be got.
void BulkIn::leave_to_peer(Transfer& transfer, base::Nanoseconds now) {
    const auto unread = std::exchange(transfer.unread, {});  // first: what is sent below may bring us here again
    std::erase(reading_, transfer.index);
    for (const auto& range : unread) {
        if (grant(transfer, range, now)) continue;
        transfer.incomplete = true;  // as if it were here, so that the peer does not wait for ever
        transfer.lacking = ErrorCode::out_of_memory;
        transfer.got += range.end - range.begin;
    }
    confirm(transfer, now);
    end_if_over(transfer);
}

/// Tells the peer when nothing more is read of its memory.
void BulkIn::confirm(Transfer& transfer, base::Nanoseconds now) {
    if (!transfer.unread.empty() || transfer.getting > 0 || transfer.got == 0) return;
    if (std::exchange(transfer.confirmed, true)) return;
    Frame* frame = rails_.pool().take(FrameHeader::size + FinAckBody::size);
    frame->type = FrameType::fin_ack;
    frame->flags = rails::frame_flag::ack_now;
    frame->bytes = FrameHeader::size + FinAckBody::size;
    write_fin_ack(frame->data() + FrameHeader::size,
                  {.sender = transfer.sender, .wanted = transfer.place.bytes, .bytes = transfer.got});
    rails_.send(transfer.place.peer, frame, now);
}

// --- The end ---------------------------------------------------------------------------------------------------------

void BulkIn::end_if_over(Transfer& transfer) {
    if (transfer.put + transfer.got + transfer.inlined < transfer.place.bytes || transfer.getting > 0) return;
    end(transfer, transfer.incomplete ? transfer.lacking : ErrorCode::ok);
}

void BulkIn::end(Transfer& transfer, ErrorCode code) {
    rails_.regions().close(transfer.regions);
    transfer.regions_here.drop(use_for(transfer));
    drop_unread(transfer);
    const auto place = transfer.place;
    if (code == ErrorCode::ok && transfer.bounce != nullptr) {
        scatter(place.pieces, {transfer.bounce.get(), static_cast<std::size_t>(place.bytes)});
    }
    transfer.bounce.reset();
    transfers_.give(transfer);
    place.owner->bulk_received(place.cookie, code);
}

void BulkIn::peer_gone(std::uint32_t peer, ErrorCode code) {
    transfers_.for_each([&](Transfer& transfer) {
        if (transfer.place.peer != peer) return;
        if (transfer.getting == 0) return end(transfer, code);
        drop_unread(transfer);
        transfer.code = code;  // the end comes when no rail writes to it any more
    });
}

}  // namespace railmux::messaging

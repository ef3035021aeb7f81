#include "messaging/bulk_in.hpp"

#include <new>

#include "messaging/operation.hpp"

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;

std::optional<Handle> BulkIn::open(const Place& place) {
    Transfer& transfer = transfers_.take();
    transfer.closed = transfer.incomplete = false;
    transfer.place = place;
    transfer.received = 0;
    if (place.pieces.size() > 1) {
        transfer.bounce.reset(new (std::nothrow) std::byte[place.bytes]);
        if (transfer.bounce == nullptr) {
            transfers_.give(transfer);
            return std::nullopt;
        }
    }
    if (!rails_.open_regions(place.peer, {start_of(transfer), place.bytes}, transfer.regions)) {
        forget(handle_of(transfer));
        return std::nullopt;
    }
    keys_.clear();
    for (const auto& open : transfer.regions) {
        keys_.push_back({static_cast<std::uint8_t>(open.rail), open.region.key});
    }
    return handle_of(transfer);
}

void BulkIn::answer(std::uint32_t peer, Handle sender, std::optional<Handle> opened, std::uint64_t bytes,
                    base::Nanoseconds now) {
    const auto keys = opened ? this->keys() : std::span<const rails::BulkTarget::Key>{};
    const auto size = FrameHeader::size + CtsBody::size + keys.size() * bulk_key_size;
    Frame* frame = rails_.pool().take(size);
    frame->type = FrameType::cts;
    frame->bytes = static_cast<std::uint32_t>(size);
    const auto receiver = opened.value_or(Handle{});
    write_cts(frame->data() + FrameHeader::size, {.sender = sender, .receiver = receiver, .bytes = opened ? bytes : 0},
              keys);
    rails_.send(peer, frame, now);
}

void BulkIn::close(Handle handle) noexcept {
    Transfer* transfer = transfers_.find(handle);
    if (transfer == nullptr) return;
    transfer->closed = true;
    rails_.close_regions(transfer->regions);
}

void BulkIn::forget(Handle handle) noexcept {
    Transfer* transfer = transfers_.find(handle);
    if (transfer == nullptr) return;
    rails_.close_regions(transfer->regions);
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
    return {start_of(*transfer) + fin->offset, static_cast<std::size_t>(fin->bytes)};
}

bool BulkIn::on_fin(std::uint32_t peer, const FrameHeader& header, std::span<const std::byte> body) {
    const auto fin = parse_fin(body);
    if (!fin) return false;
    Transfer* transfer = find(peer, *fin);
    if (transfer == nullptr || fin->bytes > transfer->place.bytes - transfer->received) return false;
    const auto wanted = transfer->place.bytes;
    transfer->received += fin->bytes;
    transfer->incomplete = transfer->incomplete || transfer->closed || (header.flags & rails::frame_flag::denied) != 0;
    if (transfer->received == wanted) end(*transfer, transfer->incomplete ? ErrorCode::access_denied : ErrorCode::ok);
    return true;
}

void BulkIn::end(Transfer& transfer, ErrorCode code) {
    rails_.close_regions(transfer.regions);
    const auto place = transfer.place;
    if (code == ErrorCode::ok && transfer.bounce != nullptr) {
        scatter(place.pieces, 0, {transfer.bounce.get(), static_cast<std::size_t>(place.bytes)});
    }
    transfer.bounce.reset();
    transfers_.give(transfer);
    place.owner->bulk_received(place.cookie, code);
}

void BulkIn::peer_gone(std::uint32_t peer, ErrorCode code) {
    transfers_.for_each([&](Transfer& transfer) {
        if (transfer.place.peer == peer) end(transfer, code);
    });
}

}  // namespace railmux::messaging

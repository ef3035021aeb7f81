#include "rails/frame.hpp"

namespace railmux::rails {

namespace {

bool known(FrameType type) noexcept {
    switch (type) {
        case FrameType::proof:
        case FrameType::ack:
        case FrameType::bye:
        case FrameType::closing:
        case FrameType::probe:
        case FrameType::probe_reply:
        case FrameType::model:
        case FrameType::lost:
        case FrameType::settle:
        case FrameType::settled:
        case FrameType::address:
        case FrameType::probe_memory:
        case FrameType::eager:
        case FrameType::rts:
        case FrameType::cts:
        case FrameType::fin:
        case FrameType::fin_ack:
        case FrameType::put:
        case FrameType::get:
        case FrameType::atomic:
        case FrameType::put_request:
        case FrameType::get_request:
        case FrameType::got:
        case FrameType::results: return true;
    }
    return false;
}

}  // namespace

std::optional<FrameHeader> parse_header(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < FrameHeader::size) return std::nullopt;
    const auto* at = bytes.data();
    FrameHeader header;
    header.type = static_cast<FrameType>(at[0]);
    header.flags = static_cast<std::uint8_t>(at[1]);
    if (!known(header.type) || (header.flags & ~frame_flag::all) != 0) {
        return std::nullopt;
    }
    header.held = base::load<std::uint16_t>(at + 2) * held_unit;
    header.seq = base::load<std::uint32_t>(at + 4);
    header.ack = base::load<std::uint32_t>(at + 8);
    header.consumed = base::load<std::uint32_t>(at + 12);
    header.order = base::load<std::uint32_t>(at + 16);
    header.aux = base::load<std::uint32_t>(at + 20);
    return header;
}

void write_header(std::byte* to, const FrameHeader& header) noexcept {
    to[0] = static_cast<std::byte>(header.type);
    to[1] = static_cast<std::byte>(header.flags);
    base::store(to + 2, std::uint16_t{0});
    base::store(to + 4, header.seq);
    base::store(to + 8, header.ack);
    base::store(to + 12, header.consumed);
    base::store(to + 16, header.order);
    base::store(to + 20, header.aux);
}

}  // namespace railmux::rails

#include "rails/session.hpp"

#include <algorithm>
#include <utility>

#include "base/bytes.hpp"

namespace railmux::rails {

Session::~Session() {
    for (auto order = held_.base(); held_count_ > 0; ++order) {
        if (Frame* frame = held_.get(order); frame != nullptr) {
            pool_.give(frame);
            --held_count_;
        }
    }
}

Session::Arrival Session::arrived(std::uint32_t seq) {
    const auto distance = seq - received_.base();
    if (distance > ~std::uint32_t{0} / 2) return Arrival::duplicate;
    if (distance >= window) return Arrival::impossible;
    if (distance == 0 && highest_ == seq) {  // the usual case: nothing is missing, nothing waits
        received_.pop();
        ++highest_;
        return Arrival::fresh;
    }
    auto& seen = received_.at(seq);
    if (std::exchange(seen, std::uint8_t{1}) != 0) return Arrival::duplicate;
    if (highest_ - received_.base() <= distance) highest_ = seq + 1;
    while (received_.base() != highest_ && received_.get(received_.base()) != 0) received_.pop();
    return Arrival::fresh;
}

bool Session::hold(const FrameHeader& header, std::span<const std::byte> body) {
    auto& slot = held_.at(header.order);
    if (slot != nullptr || body.size() > FramePool::largest_on_rail - FrameHeader::size) return false;
    slot = pool_.take(FrameHeader::size + body.size());
    slot->bytes = static_cast<std::uint32_t>(FrameHeader::size + body.size());
    write_header(slot->data(), header);
    base::copy(slot->data() + FrameHeader::size, body.data(), body.size());
    ++held_count_;
    return true;
}

std::size_t Session::write_sack(std::span<std::byte, max_sack_bytes> sack) const noexcept {
    const auto count = highest_ - received_.base();
    const std::size_t used = (count + 7) / 8;
    std::fill_n(sack.begin(), used, std::byte{0});
    for (std::uint32_t i = 0; i < count; ++i) {
        if (received_.get(received_.base() + i) != 0) sack[i / 8] |= std::byte{1} << (i % 8);
    }
    return used;
}

}  // namespace railmux::rails

#include "rails/seal.hpp"

#include "base/crc32c.hpp"

namespace railmux::rails {

void seal(Frame& frame) noexcept {
    if (!frame.summed) {
        frame.put_sum = 0;
        for (const auto& piece : frame.put()) frame.put_sum = base::crc32c({piece.data, piece.size}, frame.put_sum);
        frame.summed = true;
    }
    auto* behind = frame.data() + frame.bytes;
    base::store(behind, frame.put_sum);
    base::store(behind + 4, base::crc32c({frame.data(), frame.bytes + std::size_t{4}}));
}

std::optional<Opened> open_sealed(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < Seal::size) return std::nullopt;
    const auto frame = bytes.first(bytes.size() - Seal::size);
    const auto sum = base::crc32c(bytes.first(bytes.size() - 4));
    if (base::load<std::uint32_t>(bytes.data() + bytes.size() - 4) != sum) return std::nullopt;
    return Opened{.frame = frame, .put_sum = base::load<std::uint32_t>(frame.data() + frame.size())};
}

}  // namespace railmux::rails

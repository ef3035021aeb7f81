#include "transports/shm/greeting.hpp"

#include "base/bytes.hpp"

namespace railmux::transports::shm {

namespace {
constexpr std::uint32_t magic = 0x534d5852;  // "RXMS"
constexpr std::uint8_t flag_strict = 1;
}  // namespace

std::vector<std::byte> Greeting::encode() const {
    base::Writer out;
    out.write(magic)
        .write(version)
        .write(static_cast<std::uint8_t>(kind))
        .write(strict ? flag_strict : std::uint8_t{0});
    out.write(static_cast<std::uint32_t>(sizeof(Block))).write(static_cast<std::uint32_t>(body.size()));
    out.write(mark_address).write(mark).append(body);
    return std::move(out).take();
}

Parsed parse(std::span<const std::byte> bytes, Greeting& greeting) noexcept {
    base::Reader in(bytes);
    if (in.read<std::uint32_t>() != magic) return Parsed::malformed;
    greeting.version = in.read<std::uint16_t>();
    if (!in.ok()) return Parsed::malformed;
    const auto kind = in.read<std::uint8_t>();
    greeting.kind = static_cast<GreetingKind>(kind);
    if (greeting.version != wire_version) return Parsed::other_version;
    const auto flags = in.read<std::uint8_t>();
    const auto block = in.read<std::uint32_t>();
    const auto length = in.read<std::uint32_t>();
    greeting.mark_address = in.read<std::uint64_t>();
    greeting.mark = in.read<std::uint64_t>();
    if (!in.ok() || kind < 1 || kind > 3 || flags > flag_strict || block != sizeof(Block) || length != in.left() ||
        length > Greeting::max_body) {
        return Parsed::malformed;
    }
    greeting.strict = flags == flag_strict;
    greeting.body = in.take(length);
    return Parsed::complete;
}

}  // namespace railmux::transports::shm

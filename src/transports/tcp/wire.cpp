#include "transports/tcp/wire.hpp"

#include <algorithm>

#include "base/bytes.hpp"
#include "base/crc32c.hpp"

namespace railmux::transports::tcp {

namespace {

constexpr std::uint32_t magic = 0x58554d52;  // "RMUX"
constexpr std::uint8_t kind_send = 1;
constexpr std::uint8_t kind_put = 2;
constexpr std::size_t summed_size = StreamHeader::put_size - sizeof(std::uint32_t);

constexpr std::byte tls_alert{21};
constexpr std::byte tls_handshake{22};
constexpr std::byte tls_client_hello{1};

/// TLS is big endian.
std::size_t load_big(std::span<const std::byte> bytes) noexcept {
    std::size_t value = 0;
    for (const auto byte : bytes) value = value << 8 | std::to_integer<std::size_t>(byte);
    return value;
}

}  // namespace

Greeting::Bytes encode(const Greeting& greeting) noexcept {
    Greeting::Bytes bytes{};
    base::store(bytes.data(), magic);
    base::store(bytes.data() + 4, greeting.version);
    bytes[6] = static_cast<std::byte>(greeting.kind);
    base::store(bytes.data() + 8, greeting.length);
    return bytes;
}

Parsed parse(std::span<const std::byte> bytes, Greeting& greeting) noexcept {
    // What cannot become a greeting any more is refused at once, not only when enough of it has come.
    std::array<std::byte, 4> expected{};
    base::store(expected.data(), magic);
    const auto seen = std::min(bytes.size(), expected.size());
    if (!std::equal(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(seen), bytes.begin())) {
        return Parsed::malformed;
    }
    if (bytes.size() < Greeting::size) return Parsed::incomplete;
    greeting.version = base::load<std::uint16_t>(bytes.data() + 4);
    if (greeting.version != stream_version) return Parsed::other_version;
    const auto kind = static_cast<std::uint8_t>(bytes[6]);
    greeting.kind = static_cast<GreetingKind>(kind);
    greeting.length = base::load<std::uint16_t>(bytes.data() + 8);
    if (kind < 1 || kind > 4 || bytes[7] != std::byte{0} || base::load<std::uint16_t>(bytes.data() + 10) != 0 ||
        greeting.length > Greeting::max_body) {
        return Parsed::malformed;
    }
    return Parsed::complete;
}

bool looks_like_tls(std::span<const std::byte> bytes) noexcept {
    const bool kind = !bytes.empty() && (bytes[0] == tls_handshake || bytes[0] == tls_alert);
    return kind && (bytes.size() == 1 || bytes[1] == std::byte{3});  // the version, which has not moved since SSL 3
}

Parsed parse(std::span<const std::byte> bytes, TlsOpening& opening) noexcept {
    if (!bytes.empty() && !looks_like_tls(bytes)) return Parsed::malformed;
    if (bytes.size() < TlsOpening::record_header) return Parsed::incomplete;
    const auto length = load_big(bytes.subspan(3, 2));
    opening.size = TlsOpening::record_header + length;
    opening.client_hello = false;
    if (bytes[0] == tls_alert) return length == 2 ? Parsed::complete : Parsed::malformed;
    if (opening.size < TlsOpening::header_size || opening.size > TlsOpening::max_size) return Parsed::malformed;
    if (bytes.size() < TlsOpening::header_size) return Parsed::incomplete;
    opening.client_hello = bytes[5] == tls_client_hello;
    return load_big(bytes.subspan(6, 3)) == opening.size - TlsOpening::header_size ? Parsed::complete
                                                                                   : Parsed::malformed;
}

std::size_t write_header(std::byte* to, const Work& work, std::uint32_t length) noexcept {
    const bool put = work.op == Op::put;
    to[0] = static_cast<std::byte>(put ? kind_put : kind_send);
    to[1] = static_cast<std::byte>(put && work.notify ? 1 : 0);
    base::store(to + 2, std::uint16_t{0});
    base::store(to + 4, length);
    if (!put) return StreamHeader::send_size;
    base::store(to + 8, work.remote.id);
    base::store(to + 16, work.remote.secret);
    base::store(to + 24, work.offset);
    base::store(to + 32, work.immediate);
    base::store(to + summed_size, base::crc32c({to, summed_size}));
    return StreamHeader::put_size;
}

Parsed parse(std::span<const std::byte> bytes, StreamHeader& header) noexcept {
    if (bytes.size() < StreamHeader::send_size) return Parsed::incomplete;
    const auto kind = static_cast<std::uint8_t>(bytes[0]);
    const auto notify = static_cast<std::uint8_t>(bytes[1]);
    header.length = base::load<std::uint32_t>(bytes.data() + 4);
    if (base::load<std::uint16_t>(bytes.data() + 2) != 0) return Parsed::malformed;
    if (kind == kind_send) {
        header.op = Op::send;
        return notify == 0 && header.length <= max_frame ? Parsed::complete : Parsed::malformed;
    }
    if (kind != kind_put || notify > 1 || header.length > max_put) return Parsed::malformed;
    if (bytes.size() < StreamHeader::put_size) return Parsed::incomplete;
    const auto sum = base::load<std::uint32_t>(bytes.data() + summed_size);
    if (sum != base::crc32c(bytes.first(summed_size))) return Parsed::corrupted;
    header.op = Op::put;
    header.notify = notify == 1;
    header.key.id = base::load<std::uint64_t>(bytes.data() + 8);
    header.key.secret = base::load<std::uint64_t>(bytes.data() + 16);
    header.offset = base::load<std::uint64_t>(bytes.data() + 24);
    header.immediate = base::load<std::uint32_t>(bytes.data() + 32);
    return Parsed::complete;
}

}  // namespace railmux::transports::tcp

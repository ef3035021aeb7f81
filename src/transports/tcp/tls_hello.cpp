#include "transports/tcp/tls_hello.hpp"

#include <openssl/sha.h>

#include <algorithm>
#include <string_view>

#include "base/bytes.hpp"
#include "transports/tcp/wire.hpp"

namespace railmux::transports::tcp {

namespace {

constexpr std::size_t random_at = TlsOpening::header_size + 2;  // behind the version
// The last of it: u16 bytes of all proofs, u8 bytes of the one, and that.
constexpr std::size_t binders_size = 3 + sizeof(base::Digest);

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

base::Digest sha256(std::span<const std::byte> bytes) {
    base::Digest digest{};
    SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
           reinterpret_cast<unsigned char*>(digest.data()));
    return digest;
}

/// HKDF-Expand-Label of RFC 8446, 7.1, for the size of a digest: one round of HKDF-Expand.
base::Digest expand(const base::Digest& secret, std::string_view label, std::span<const std::byte> context) {
    constexpr std::string_view prefix = "tls13 ";
    const std::array head{std::byte{0}, std::byte{sizeof(base::Digest)},
                          static_cast<std::byte>(prefix.size() + label.size())};
    const std::array context_size{static_cast<std::byte>(context.size())};
    const std::array round{std::byte{1}};
    return base::hmac_sha256(secret, {head, bytes_of(prefix), bytes_of(label), context_size, context, round});
}

}  // namespace

TlsHello::TlsHello(const base::Digest& key) {
    const base::Digest zeros{};
    const auto early_secret = base::hmac_sha256(zeros, {key});
    binder_key_ = expand(expand(early_secret, "ext binder", sha256({})), "finished", {});
}

bool TlsHello::proves_key(std::span<const std::byte> record) const {
    if (record.size() < random_at + sizeof(std::uint64_t) + binders_size) return false;
    const auto binders = record.last(binders_size);
    constexpr std::array sizes{std::byte{0}, std::byte{1 + sizeof(base::Digest)}, std::byte{sizeof(base::Digest)}};
    if (!std::ranges::equal(binders.first(sizes.size()), sizes)) return false;
    const auto covered =
        record.subspan(TlsOpening::record_header, record.size() - TlsOpening::record_header - binders_size);
    return base::equal_constant_time(base::hmac_sha256(binder_key_, {sha256(covered)}), binders.subspan(sizes.size()));
}

bool TlsHello::is_new(std::span<const std::byte> record) noexcept {
    const auto random = base::load<std::uint64_t>(record.data() + random_at);
    if (std::ranges::find(seen_, random) != seen_.end()) return false;
    seen_[next_] = random;
    next_ = (next_ + 1) % seen_.size();
    return true;
}

}  // namespace railmux::transports::tcp

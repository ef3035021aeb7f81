// TlsHello: judges the first message of a TLS connection before anything is made for who sent it: whether he knows the key, and
// whether it is not a copy of somebody else's. OpenSSL would judge the same, at a hundred times the price.
//
// Threads: one engine at a time.
// Lifetime: a value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/crypto.hpp"

namespace railmux::transports::tcp {

class TlsHello {
public:
    /// `key`: the pre-shared key of TLS.
    explicit TlsHello(const base::Digest& key);

    /// Whether `record`, a whole ClientHello in its record, ends with a proof of the key (RFC 8446, 4.2.11.2) and no other.
    [[nodiscard]] bool proves_key(std::span<const std::byte> record) const;
    /// Whether it has not come before, of the last 4096 that proved the key. Remembers it.
    [[nodiscard]] bool is_new(std::span<const std::byte> record) noexcept;

private:
    base::Digest binder_key_{};
    std::array<std::uint64_t, 4096> seen_{};
    std::size_t next_ = 0;
};

}  // namespace railmux::transports::tcp

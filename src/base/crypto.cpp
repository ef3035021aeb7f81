#include "base/crypto.hpp"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <railmux/error.hpp>

namespace railmux::base {
namespace {

struct FreeMac {
    void operator()(EVP_MAC* mac) const noexcept { EVP_MAC_free(mac); }
    void operator()(EVP_MAC_CTX* context) const noexcept { EVP_MAC_CTX_free(context); }
};

const unsigned char* octets(std::span<const std::byte> bytes) noexcept {
    // OpenSSL takes a null key for "keep the previous one": an empty key must not be null.
    static constexpr unsigned char none = 0;
    return bytes.empty() ? &none : reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

void fill_random(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
        const auto got = getrandom(bytes.data(), bytes.size(), 0);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) {
            throw Error(ErrorCode::system, fmt::format("no random bytes: {}", std::strerror(errno)),
                        "allow getrandom(2) where a container's filter forbids it");
        }
        bytes = bytes.subspan(static_cast<std::size_t>(got));
    }
}

std::uint64_t random_u64() {
    std::uint64_t value = 0;
    fill_random(std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

Digest hmac_sha256(std::span<const std::byte> key, std::initializer_list<std::span<const std::byte>> parts) {
    const std::unique_ptr<EVP_MAC, FreeMac> mac(EVP_MAC_fetch(nullptr, "HMAC", nullptr));
    const std::unique_ptr<EVP_MAC_CTX, FreeMac> context(mac ? EVP_MAC_CTX_new(mac.get()) : nullptr);
    std::array<char, 7> hash{"SHA256"};
    const std::array<OSSL_PARAM, 2> settings{OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, hash.data(), 0),
                                             OSSL_PARAM_construct_end()};
    bool good = context && EVP_MAC_init(context.get(), octets(key), key.size(), settings.data()) == 1;
    for (const auto part : parts) good = good && EVP_MAC_update(context.get(), octets(part), part.size()) == 1;
    Digest digest{};
    std::size_t size = 0;
    good = good &&
           EVP_MAC_final(context.get(), reinterpret_cast<unsigned char*>(digest.data()), &size, digest.size()) == 1;
    if (!good || size != digest.size()) throw Error(ErrorCode::system, "the crypto library has no HMAC-SHA256");
    return digest;
}

bool equal_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) noexcept {
    return a.size() == b.size() && (a.empty() || CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0);
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string text;
    text.reserve(2 * bytes.size());
    for (const auto byte : bytes) fmt::format_to(std::back_inserter(text), "{:02x}", std::to_integer<unsigned>(byte));
    return text;
}

}  // namespace railmux::base

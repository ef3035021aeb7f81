// TlsContext: the key and the ciphers that all connections share, and the socket as OpenSSL sees it.
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "transports/tcp/tls.hpp"
#include "transports/tcp/tls_errors.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace railmux::transports::tcp {

namespace {

constexpr std::string_view identity = "railmux job key";
// OpenSSL wants sessions to have one, where certificates would be looked at.
constexpr std::array<unsigned char, 7> context_name{'r', 'a', 'i', 'l', 'm', 'u', 'x'};
constexpr std::array<unsigned char, 2> aes_128_gcm_sha256{0x13, 0x01};

/// Neither key tells the other.
base::Digest derived_from(std::string_view job_key) {
    constexpr std::string_view label = "railmux tls";
    return base::hmac_sha256(std::as_bytes(std::span(job_key)), {std::as_bytes(std::span(label))});
}

/// Without instructions for AES, ChaCha20 is several times faster.
bool has_fast_aes() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    return __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
#elif defined(__aarch64__)
    constexpr auto needed = HWCAP_AES | HWCAP_PMULL;
    return (::getauxval(AT_HWCAP) & needed) == needed;
#else
    return false;
#endif
}

}  // namespace

std::string_view encryption_differs(bool encrypted_here) noexcept {
    return encrypted_here
               ? "it does not encrypt, this side does; set tcp.encryption (RAILMUX_TCP_ENCRYPTION) alike on both"
               : "it encrypts, this side does not; set tcp.encryption (RAILMUX_TCP_ENCRYPTION) alike on both";
}

// --- What OpenSSL calls ----------------------------------------------------------------------------------------------

struct TlsContext::Callbacks {
    static TlsContext& context_of(SSL* ssl) {
        return *static_cast<TlsContext*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)));
    }

    /// Each connection has the key to itself: it writes into it what was agreed upon. To OpenSSL it is a session like those of
    /// tickets, which are over after 304 s; ours does not age.
    static SSL_SESSION* copy_of_key(SSL* ssl) {
        auto* key = SSL_SESSION_dup(context_of(ssl).key_.get());
        if (key != nullptr) SSL_SESSION_set_time(key, static_cast<long>(std::time(nullptr)));
        return key;
    }

    static int connector_key(SSL* ssl, const EVP_MD*, const unsigned char** name, std::size_t* size,
                             SSL_SESSION** key) {
        *name = reinterpret_cast<const unsigned char*>(identity.data());
        *size = identity.size();
        *key = copy_of_key(ssl);
        return *key != nullptr ? 1 : 0;
    }

    static int acceptor_key(SSL* ssl, const unsigned char* name, std::size_t size, SSL_SESSION** key) {
        const bool ours = std::string_view(reinterpret_cast<const char*>(name), size) == identity;
        *key = ours ? copy_of_key(ssl) : nullptr;
        return 1;
    }

    static Tls& tls_of(BIO* bio) { return *static_cast<Tls*>(BIO_get_data(bio)); }

    // A BIO of our own, because OpenSSL's raises SIGPIPE and can take a record in part only. This one takes all: what the
    // socket has no room for waits in the backlog.
    static int write(BIO* bio, const char* data, std::size_t size, std::size_t* written) {
        auto& tls = tls_of(bio);
        std::size_t sent = 0;
        while (!tls.waiting() && sent < size) {
            const auto some = ::send(tls.socket_, data + sent, size - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (some < 0 && errno == EINTR) continue;
            if (some < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
                tls.socket_error_ = errno;
                return 0;
            }
            if (some < 0) break;
            sent += static_cast<std::size_t>(some);
        }
        const auto* rest = reinterpret_cast<const std::byte*>(data);
        tls.backlog_.insert(tls.backlog_.end(), rest + sent, rest + size);
        *written = size;
        return 1;
    }

    static int read(BIO* bio, char* data, std::size_t size, std::size_t* got) {
        auto& tls = tls_of(bio);
        BIO_clear_retry_flags(bio);
        if (tls.first_at_ < tls.first_.size()) {
            *got = std::min(size, tls.first_.size() - tls.first_at_);
            std::memcpy(data, tls.first_.data() + tls.first_at_, *got);
            tls.first_at_ += *got;
            return 1;
        }
        if (!tls.given_ || (tls.ahead_ && std::exchange(tls.asked_, true))) {
            BIO_set_retry_read(bio);
            return 0;
        }
        const auto some = ::recv(tls.socket_, data, size, MSG_DONTWAIT);
        if (some > 0) {
            *got = static_cast<std::size_t>(some);
            return 1;
        }
        if (some == 0) {
            tls.ended_ = true;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) {
            BIO_set_retry_read(bio);
        } else {
            tls.socket_error_ = errno;
        }
        return 0;
    }

    static long control(BIO* bio, int command, long, void*) {
        if (command == BIO_CTRL_EOF) return tls_of(bio).ended_ ? 1 : 0;
        return command == BIO_CTRL_FLUSH ? 1 : 0;
    }
};

// --- TlsContext ------------------------------------------------------------------------------------------------------

void TlsContext::Free::operator()(ssl_ctx_st* context) const noexcept { SSL_CTX_free(context); }
void TlsContext::Free::operator()(ssl_session_st* session) const noexcept { SSL_SESSION_free(session); }
void TlsContext::Free::operator()(bio_method_st* method) const noexcept { BIO_meth_free(method); }

TlsContext::TlsContext(std::string_view job_key, std::uint64_t records_before_new_key)
    : context_(SSL_CTX_new(TLS_method())), records_per_key_(records_before_new_key) {
    auto* const context = context_.get();
    require_crypto(context != nullptr, "TLS");
    SSL_CTX_set_app_data(context, this);
    // The cipher is the connector's first choice if that is ChaCha20, else the acceptor's: AES where both are fast at it.
    const auto* const ciphers = has_fast_aes() ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                                               : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA | SSL_OP_NO_TICKET);
    SSL_CTX_clear_options(context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT | SSL_OP_ALLOW_NO_DHE_KEX);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    // Nobody gets in by a certificate instead: there is none that would be believed. See also Tls::handshake.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    // P-256 alone, which every build of OpenSSL has: both sides are railmux, and strangers find nothing that costs more.
    require_crypto(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                       SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
                       SSL_CTX_set_ciphersuites(context, ciphers) == 1 &&
                       SSL_CTX_set1_groups_list(context, "P-256") == 1 && SSL_CTX_set_num_tickets(context, 0) == 1 &&
                       SSL_CTX_set_session_id_context(context, context_name.data(), context_name.size()) == 1,
                   "TLS 1.3");
    SSL_CTX_set_default_read_buffer_len(context, Tls::most_read);
    SSL_CTX_set_psk_use_session_callback(context, Callbacks::connector_key);
    SSL_CTX_set_psk_find_session_callback(context, Callbacks::acceptor_key);

    const auto key = derived_from(job_key);
    hello_.emplace(key);
    key_.reset(SSL_SESSION_new());
    const std::unique_ptr<SSL, decltype(&SSL_free)> any(SSL_new(context), SSL_free);
    require_crypto(key_ && any &&
                       SSL_SESSION_set1_master_key(key_.get(), reinterpret_cast<const unsigned char*>(key.data()),
                                                   key.size()) == 1 &&
                       SSL_SESSION_set_cipher(key_.get(), SSL_CIPHER_find(any.get(), aes_128_gcm_sha256.data())) == 1 &&
                       SSL_SESSION_set_protocol_version(key_.get(), TLS1_3_VERSION) == 1 &&
                       SSL_SESSION_set1_id_context(key_.get(), context_name.data(), context_name.size()) == 1,
                   "key for TLS 1.3");
    SSL_SESSION_set_time(key_.get(), 1);  // older than any: so each connection shows that its copy's time counts
    method_.reset(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "railmux socket"));
    require_crypto(method_ && BIO_meth_set_write_ex(method_.get(), Callbacks::write) == 1 &&
                       BIO_meth_set_read_ex(method_.get(), Callbacks::read) == 1 &&
                       BIO_meth_set_ctrl(method_.get(), Callbacks::control) == 1,
                   "memory");
}

TlsContext::~TlsContext() = default;

}  // namespace railmux::transports::tcp

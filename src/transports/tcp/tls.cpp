#include "transports/tcp/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.hpp"
#include "transports/tcp/tls_errors.hpp"

namespace railmux::transports::tcp {

void Tls::Free::operator()(ssl_st* ssl) const noexcept { SSL_free(ssl); }

Tls::Tls(TlsContext& context, Side side, int socket)
    : context_(context), socket_(socket), ssl_(SSL_new(context.context_.get())) {
    BIO* const bio = ssl_ ? BIO_new(context.method_.get()) : nullptr;
    require_crypto(bio != nullptr, "memory");
    BIO_set_data(bio, this);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    if (side == Side::connector) {
        SSL_set_connect_state(ssl_.get());
    } else {
        SSL_set_accept_state(ssl_.get());
    }
}

Tls::~Tls() {
    if (ready_ && trouble_.empty() && !waiting()) {
        forget_errors();
        SSL_shutdown(ssl_.get());
        forget_errors();
    }
    ssl_.reset();  // before what its BIO uses
}

void Tls::give(std::span<const std::byte> first) {
    first_.assign(first.begin(), first.end());
    given_ = true;
}

Tls::Step Tls::handshake() noexcept {
    if (ready_) return Step::done;
    if (!trouble_.empty()) return Step::failed;
    forget_errors();
    const int result = SSL_do_handshake(ssl_.get());
    if (waiting()) {
        over("its socket does not even take a handshake");
        return Step::failed;
    }
    if (result != 1) {
        if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) return Step::waiting;
        fail(result);
        return Step::failed;
    }
    if (SSL_session_reused(ssl_.get()) != 1) {
        over(std::string(keys_differ), ErrorCode::wrong_key);
        return Step::failed;
    }
    first_ = {};
    first_at_ = 0;
    ready_ = true;
    return Step::done;
}

void Tls::read_ahead() noexcept {
    ahead_ = true;
    SSL_set_read_ahead(ssl_.get(), 1);
}

bool Tls::pending() const noexcept { return SSL_pending(ssl_.get()) > 0; }

// --- Writing ---------------------------------------------------------------------------------------------------------

ssize_t Tls::write(std::span<const iovec> pieces) noexcept {
    if (!flush()) return -1;
    std::size_t taken = 0;
    std::size_t piece = 0;
    std::size_t offset = 0;
    while (!waiting()) {
        const auto record = next_record(pieces, piece, offset);
        if (record.empty()) break;
        if (!encrypt(record)) return -1;
        taken += record.size();
    }
    return static_cast<ssize_t>(taken);
}

/// The bytes of the next record: of a piece itself, or of several copied together, as each record costs as much as some
/// hundred bytes.
std::span<const std::byte> Tls::next_record(std::span<const iovec> pieces, std::size_t& piece,
                                            std::size_t& offset) noexcept {
    auto& scratch = context_.scratch_;
    std::size_t filled = 0;
    while (piece < pieces.size() && filled < scratch.size()) {
        const auto* const data = static_cast<const std::byte*>(pieces[piece].iov_base) + offset;
        const auto left = pieces[piece].iov_len - offset;
        const auto size = std::min(left, scratch.size() - filled);
        const bool last = size == left && piece + 1 == pieces.size();
        offset = size == left ? 0 : offset + size;
        piece += size == left ? 1U : 0U;
        if (filled == 0 && (last || size == scratch.size())) return {data, size};
        base::copy(scratch.data() + filled, data, size);
        filled += size;
    }
    return std::span(scratch).first(filled);
}

bool Tls::encrypt(std::span<const std::byte> record) noexcept {
    forget_errors();
    if (++records_ > context_.records_per_key_) {
        records_ = 1;
        if (SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED) != 1) {
            fail(0);
            return false;
        }
    }
    std::size_t written = 0;
    const int result = SSL_write_ex(ssl_.get(), record.data(), record.size(), &written);
    if (result == 1 && written == record.size()) return true;
    fail(result);
    return false;
}

bool Tls::flush() noexcept {
    while (waiting()) {
        const auto sent =
            ::send(socket_, backlog_.data() + backlog_at_, backlog_.size() - backlog_at_, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS)) return true;
        if (sent < 0) {
            over(std::strerror(errno));
            return false;
        }
        backlog_at_ += static_cast<std::size_t>(sent);
    }
    backlog_.clear();
    backlog_at_ = 0;
    return true;
}

// --- Reading ---------------------------------------------------------------------------------------------------------

ssize_t Tls::read(std::span<const iovec> pieces) noexcept {
    asked_ = false;
    ssize_t total = 0;
    for (const auto& piece : pieces) {
        const auto got = read_piece(static_cast<std::byte*>(piece.iov_base), piece.iov_len);
        total += got;
        if (static_cast<std::size_t>(got) < piece.iov_len) break;
    }
    if (total > 0) {
        // The next read tells what ended the stream; so that there is one, the socket must have something for it.
        if (goodbye_ || !trouble_.empty()) ::shutdown(socket_, SHUT_RD);
        return total;
    }
    if (goodbye_) return 0;
    errno = trouble_.empty() ? EAGAIN : EPROTO;
    return -1;
}

ssize_t Tls::read_piece(std::byte* to, std::size_t size) noexcept {
    std::size_t filled = 0;
    while (filled < size && trouble_.empty() && !goodbye_) {
        std::size_t got = 0;
        forget_errors();
        const int result = SSL_read_ex(ssl_.get(), to + filled, size - filled, &got);
        filled += got;
        if (result == 1) continue;
        if (SSL_get_error(ssl_.get(), result) == SSL_ERROR_WANT_READ) break;
        fail(result);
    }
    return static_cast<ssize_t>(filled);
}

// --- The end ---------------------------------------------------------------------------------------------------------

void Tls::over(std::string why, ErrorCode code) noexcept {
    trouble_ = std::move(why);
    code_ = code;
}

/// What the call that just failed means.
void Tls::fail(int result) noexcept {
    const int kind = SSL_get_error(ssl_.get(), result);
    const int reason = ERR_GET_REASON(ERR_peek_last_error());
    if (socket_error_ != 0) {
        over(std::strerror(socket_error_));
    } else if (kind == SSL_ERROR_ZERO_RETURN && ready_) {
        goodbye_ = true;
    } else if (kind == SSL_ERROR_ZERO_RETURN) {
        over("closed by the other side before its greeting was over");
    } else if (ended_) {
        over(ready_ ? "closed by the other side without goodbye: its process has ended, or somebody cut the connection"
                    : "closed by the other side before its greeting was over");
    } else if (!ready_ && reason == SSL_R_TLSV1_ALERT_DECRYPT_ERROR) {
        over(std::string(keys_differ), ErrorCode::wrong_key);
    } else if (ready_ && reason == SSL_R_DECRYPTION_FAILED_OR_BAD_RECORD_MAC) {
        over("its bytes were changed on the way (TLS: " + crypto_reason() + ")");
    } else {
        over("TLS: " + crypto_reason());
    }
    forget_errors();  // the application may have connections of its own in this thread, which would take them for theirs
}

}  // namespace railmux::transports::tcp

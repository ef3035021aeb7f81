// Tls: TLS 1.3 on one connection, by a key that both sides have beforehand (PSK with a fresh Diffie-Hellman exchange): no
// certificates, no tickets, nothing sent before the handshake is over. TlsContext: what all connections of a transport share.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: a TlsContext outlives its connections; a Tls borrows the socket, and says goodbye over it when it ends.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "transports/tcp/tls_hello.hpp"

#include <railmux/error.hpp>

struct bio_method_st;
struct bio_st;
struct ssl_ctx_st;
struct ssl_session_st;
struct ssl_st;

namespace railmux::transports::tcp {

/// What a side says that sees that the other one does not encrypt, or does.
[[nodiscard]] std::string_view encryption_differs(bool encrypted_here) noexcept;

inline constexpr std::string_view keys_differ =
    "the job keys differ; give both sides the same job.key (RAILMUX_JOB_KEY)";

class TlsContext {
public:
    // What one AES-GCM key may protect without losing its strength is 2^24.5 full records (RFC 8446, 5.5); nobody counts the
    // smaller ones apart.
    static constexpr std::uint64_t records_per_key = 1ULL << 24;

    /// The key on the wire is derived from the job's, so that neither tells the other. Throws Error(system) when the crypto
    /// library refuses.
    explicit TlsContext(std::string_view job_key, std::uint64_t records_before_new_key = records_per_key);
    ~TlsContext();
    TlsContext(const TlsContext&) = delete;
    TlsContext& operator=(const TlsContext&) = delete;

    /// Judges those who connect.
    [[nodiscard]] TlsHello& hello() noexcept { return *hello_; }

private:
    friend class Tls;
    struct Callbacks;
    static constexpr std::size_t record_bytes = 16 * 1024;  // plaintext of the largest record

    struct Free {
        void operator()(ssl_ctx_st* context) const noexcept;
        void operator()(ssl_session_st* session) const noexcept;
        void operator()(bio_method_st* method) const noexcept;
    };
    std::unique_ptr<ssl_ctx_st, Free> context_;
    std::unique_ptr<ssl_session_st, Free> key_;  // as OpenSSL wants it: a session to be resumed
    std::unique_ptr<bio_method_st, Free> method_;
    std::optional<TlsHello> hello_;
    std::uint64_t records_per_key_;
    std::array<std::byte, record_bytes> scratch_;  // pieces of works that make a record together
};

class Tls {
public:
    enum class Side : std::uint8_t { connector, acceptor };
    enum class Step : std::uint8_t { waiting, done, failed };

    /// Throws Error(system) when the crypto library has no memory for it.
    Tls(TlsContext& context, Side side, int socket);
    /// Tells the other side that nothing was cut off, if there is room in the socket.
    ~Tls();
    Tls(const Tls&) = delete;
    Tls& operator=(const Tls&) = delete;

    /// The first bytes, which the caller has read from the socket. Before that nothing is read.
    void give(std::span<const std::byte> first);
    /// As far as it goes without waiting.
    [[nodiscard]] Step handshake() noexcept;
    [[nodiscard]] bool ready() const noexcept { return ready_; }
    /// From now on whatever the socket has is read at once: each read() takes all that there is. To be called when nothing is
    /// pending.
    void read_ahead() noexcept;

    /// As sendmsg: bytes taken, which are the caller's again; 0 when the socket has no room, -1 for trouble(). What was taken
    /// and found no room, one record at most, waits here: see waiting().
    [[nodiscard]] ssize_t write(std::span<const iovec> pieces) noexcept;
    /// So many encrypted bytes wait for room in the socket.
    [[nodiscard]] std::size_t waiting() const noexcept { return backlog_.size() - backlog_at_; }
    /// Sends those, as far as there is room; false: trouble().
    [[nodiscard]] bool flush() noexcept;

    /// As readv: bytes, 0 when the other side has said goodbye, -1 with errno EAGAIN when there is nothing yet, or -1 for
    /// trouble(). After read_ahead() it asks the kernel once, and leaves nothing behind that could be had: the pieces must have
    /// room for most_read bytes.
    [[nodiscard]] ssize_t read(std::span<const iovec> pieces) noexcept;
    static constexpr std::size_t most_read = 33 * 1024;  // two of the largest records: twice that brought nothing
    /// Bytes that the last read() could have had, too.
    [[nodiscard]] bool pending() const noexcept;

    /// Why it is over, for people; empty while it is not.
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
    /// wrong_key if that was it.
    [[nodiscard]] ErrorCode code() const noexcept { return code_; }

private:
    friend struct TlsContext::Callbacks;
    struct Free {
        void operator()(ssl_st* ssl) const noexcept;
    };

    [[nodiscard]] std::span<const std::byte> next_record(std::span<const iovec> pieces, std::size_t& piece,
                                                         std::size_t& offset) noexcept;
    [[nodiscard]] bool encrypt(std::span<const std::byte> record) noexcept;
    [[nodiscard]] ssize_t read_piece(std::byte* to, std::size_t size) noexcept;
    void fail(int result) noexcept;
    void over(std::string why, ErrorCode code = ErrorCode::unreachable) noexcept;

    TlsContext& context_;
    int socket_;
    std::unique_ptr<ssl_st, Free> ssl_;
    bool given_ = false;
    bool ready_ = false;
    bool ahead_ = false;
    bool asked_ = false;    // the kernel, in this read()
    bool ended_ = false;    // the socket has nothing more
    bool goodbye_ = false;  // and the other side had said so
    int socket_error_ = 0;
    std::uint64_t records_ = 0;  // with this key
    std::vector<std::byte> first_;
    std::size_t first_at_ = 0;
    std::vector<std::byte> backlog_;
    std::size_t backlog_at_ = 0;
    std::string trouble_;
    ErrorCode code_ = ErrorCode::ok;
};

}  // namespace railmux::transports::tcp

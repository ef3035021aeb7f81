// Bodies of the frames of one-sided operations. Layouts are little endian and listed in docs/protocol.md.
//
// The origin asks (put, get, atomic, and their large forms), the target answers (got, results; for large ones also cts or
// fins, as in wire.hpp).
// Threads: pure functions over values.
// Lifetime: parsed views point into the frame they came from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <railmux/one_sided.hpp>

#include "messaging/wire.hpp"

namespace railmux::messaging {

/// How each request begins: the place meant, and the origin's handle, which the answer repeats.
struct AskHead {
    static constexpr std::size_t size = RemoteKey::size + 16;
    RemotePlace place;
    Handle origin;
};

/// put: head, u64 flags (1: notify), payload.
struct PutBody {
    static constexpr std::size_t size = AskHead::size + 8;
    AskHead head;
    bool notify = false;
    std::span<const std::byte> payload;
};

static_assert(rails::FrameHeader::size + PutBody::size + largest_small <= transports::least_max_frame);

/// get: head, u64 bytes.
struct GetBody {
    static constexpr std::size_t size = AskHead::size + 8;
    AskHead head;
    std::uint64_t bytes = 0;
};

/// atomic: head, u8 operation, u8 width, 6 bytes 0, u64 operand, u64 expected.
struct AtomicBody {
    static constexpr std::size_t size = AskHead::size + 24;
    AskHead head;
    AtomicOp op{};
    std::uint8_t width = 0;
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;
};

/// put_request: head, u64 flags, u64 bytes, handle of the sender, which cts repeats.
struct PutRequestBody {
    static constexpr std::size_t size = AskHead::size + 24;
    AskHead head;
    bool notify = false;
    std::uint64_t bytes = 0;
    Handle sender;
};

/// get_request: head, u64 bytes, handle of the receiver, which fins repeat, u64 count, count keys as in cts.
struct GetRequestBody {
    static constexpr std::size_t size = AskHead::size + 24;
    AskHead head;
    std::uint64_t bytes = 0;
    Handle receiver;
};

/// got: handle of the origin, payload.
struct GotBody {
    static constexpr std::size_t size = 8;
    Handle origin;
    std::span<const std::byte> payload;
};

/// results: one or more x {handle of the origin, u64 code, u64 value}.
struct Result {
    static constexpr std::size_t size = 24;
    Handle origin;
    ErrorCode code = ErrorCode::ok;
    std::uint64_t value = 0;  // atomics: what was there
};

[[nodiscard]] std::optional<PutBody> parse_put(std::span<const std::byte> body) noexcept;
[[nodiscard]] std::optional<GetBody> parse_get(std::span<const std::byte> body) noexcept;
[[nodiscard]] std::optional<AtomicBody> parse_atomic(std::span<const std::byte> body) noexcept;
[[nodiscard]] std::optional<PutRequestBody> parse_put_request(std::span<const std::byte> body) noexcept;
/// Puts the keys into `keys`, whose old content goes.
[[nodiscard]] std::optional<GetRequestBody> parse_get_request(std::span<const std::byte> body,
                                                              std::vector<rails::BulkTarget::Key>& keys);
[[nodiscard]] std::optional<GotBody> parse_got(std::span<const std::byte> body) noexcept;
/// The first of them; `body` is left with the others.
[[nodiscard]] std::optional<Result> take_result(std::span<const std::byte>& body) noexcept;

// Payloads follow behind what these write.
void write_put(std::byte* to, const PutBody& body) noexcept;
void write_get(std::byte* to, const GetBody& body) noexcept;
void write_atomic(std::byte* to, const AtomicBody& body) noexcept;
void write_put_request(std::byte* to, const PutRequestBody& body) noexcept;
void write_get_request(std::byte* to, const GetRequestBody& body,
                       std::span<const rails::BulkTarget::Key> keys) noexcept;
void write_got(std::byte* to, const GotBody& body) noexcept;
void write_result(std::byte* to, const Result& result) noexcept;

}  // namespace railmux::messaging

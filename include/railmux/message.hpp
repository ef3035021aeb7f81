// What the application sends and what it learns about it: tags, buffers, peers, statuses.
//
// Threads: plain values.
// Lifetime: buffers are views; the bytes they name must outlive the request that uses them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <railmux/error.hpp>

namespace railmux {

/// A 64-bit label of a message. railmux gives its bits no meaning.
using Tag = std::uint64_t;

/// Which tags a receive accepts: those that agree with `tag` in every bit set in `mask`.
struct TagMatch {
    Tag tag = 0;
    Tag mask = ~Tag{0};

    constexpr TagMatch(Tag t, Tag m = ~Tag{0}) noexcept : tag(t), mask(m) {}  // NOLINT: a plain tag is a match
    [[nodiscard]] static constexpr TagMatch any() noexcept { return {0, 0}; }
    [[nodiscard]] constexpr bool accepts(Tag t) const noexcept { return ((t ^ tag) & mask) == 0; }
};

/// Bytes to send, and room to receive into. A list of them is a gather or scatter list.
using ConstBuffer = std::span<const std::byte>;
using MutableBuffer = std::span<std::byte>;

/// Another process, as a small value: valid for the context that gave it out, for that context's life.
class Peer {
public:
    constexpr Peer() noexcept = default;  ///< names nobody; as the source of a receive: anybody
    [[nodiscard]] constexpr bool valid() const noexcept { return index_ != none; }
    /// A dense number from 0, in the order in which the context came to know its peers.
    [[nodiscard]] constexpr std::uint32_t index() const noexcept { return index_; }
    friend constexpr bool operator==(Peer, Peer) noexcept = default;

    /// For the library's own use.
    [[nodiscard]] static constexpr Peer from_index(std::uint32_t index) noexcept { return Peer(index); }

private:
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    constexpr explicit Peer(std::uint32_t index) noexcept : index_(index) {}
    std::uint32_t index_ = none;
};

/// As the source of a receive or probe: a message from anybody matches.
inline constexpr Peer any_source{};

/// How an operation ended.
struct Status {
    ErrorCode code = ErrorCode::ok;
    Peer peer{};  ///< source of a received message, destination of a sent one
    Tag tag = 0;
    std::size_t bytes = 0;    ///< bytes placed in (or taken from) the buffer
    std::size_t message = 0;  ///< size of the whole message; more than `bytes` when truncated
    /// Of a sent message: the rails that its payload was handed to before the request ended, bit i for the i-th of
    /// Context::rails(). 0 when it still waited for a link, for room, or for others to leave with, and of a message to this
    /// process itself, which no rail carries.
    std::uint64_t rails = 0;

    [[nodiscard]] constexpr bool ok() const noexcept { return code == ErrorCode::ok; }
    [[nodiscard]] constexpr bool truncated() const noexcept { return code == ErrorCode::truncated; }
};

}  // namespace railmux

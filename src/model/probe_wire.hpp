// What prober and mirror say to each other, in front of the payload of their messages. Little endian.
//   request: u32 train, u16 n, u16 index (0..n-1), u32 bytes of payload that follow, u32 bytes that were put before
//   reply:   u32 train, u32 bytes that were put before, u64 bytes that follow, u64 held ns, u64 blind ns, u64 receive ns
//   memory:  u64 id and u64 secret of a region that the other side may put the bytes of its messages into, u64 its bytes;
//            0: no more probes from here
// Large messages of an application are put into their places, so those of a probe are, too: payload follows or is put, never
// both.
//
// Threads: pure functions over values.
// Lifetime: none.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "model/sample.hpp"

namespace railmux::model {

struct ProbeRequest {
    static constexpr std::size_t size = 16;
    static constexpr std::uint16_t max_n = 64;
    std::uint32_t train = 0;
    std::uint16_t n = 1;
    std::uint16_t index = 0;
    std::uint32_t bytes = 0;
    std::uint32_t put = 0;
    friend constexpr bool operator==(const ProbeRequest&, const ProbeRequest&) noexcept = default;
};

struct ProbeReply {
    static constexpr std::size_t size = 40;
    static constexpr base::Nanoseconds max_time = 3600 * base::second;  // more is no answer anybody waited for
    std::uint32_t train = 0;
    std::uint32_t put = 0;
    std::uint64_t bytes = 0;
    base::Nanoseconds held = 0;  // see Sample
    base::Nanoseconds blind = 0;
    base::Nanoseconds receive_cpu = 0;
    friend constexpr bool operator==(const ProbeReply&, const ProbeReply&) noexcept = default;
};

struct ProbeMemory {
    static constexpr std::size_t size = 24;
    static constexpr std::uint64_t largest = 1 << 20;
    std::uint64_t id = 0;
    std::uint64_t secret = 0;
    std::uint64_t bytes = 0;
    friend constexpr bool operator==(const ProbeMemory&, const ProbeMemory&) noexcept = default;
};

/// Takes what the mirror says into the sample of the train under way; false, and nothing happens, if it answers another.
[[nodiscard]] bool answers(const ProbeReply& reply, Sample& sample) noexcept;

/// The header at the front of `frame`, if it is in bounds and the payload behind it is as long as it says.
[[nodiscard]] std::optional<ProbeRequest> parse_request(std::span<const std::byte> frame) noexcept;
[[nodiscard]] std::optional<ProbeReply> parse_reply(std::span<const std::byte> frame) noexcept;
[[nodiscard]] std::optional<ProbeMemory> parse_memory(std::span<const std::byte> frame) noexcept;

[[nodiscard]] std::array<std::byte, ProbeRequest::size> encode(const ProbeRequest& request) noexcept;
[[nodiscard]] std::array<std::byte, ProbeMemory::size> encode(const ProbeMemory& memory) noexcept;
/// Times outside of 0..max_time are cut to it.
[[nodiscard]] std::array<std::byte, ProbeReply::size> encode(const ProbeReply& reply) noexcept;

}  // namespace railmux::model

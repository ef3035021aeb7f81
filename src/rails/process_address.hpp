// ProcessAddress: how other processes reach this one: who it is and where each of its rails listens.
//
// Threads: a value.
// Lifetime: owns everything.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <railmux/error.hpp>

namespace railmux::rails {

inline constexpr std::uint16_t wire_version = 14;
/// What a hello, reply or address of another version than ours deserves; the version is in their first two bytes.
[[nodiscard]] Error version_error(std::span<const std::byte> bytes);

inline constexpr std::uint32_t no_rank = ~std::uint32_t{0};
inline constexpr std::size_t max_rails = 64;              // of one process, on the wire; a rail number fits one byte
inline constexpr std::size_t max_process_address = 8192;  // bytes, encoded; 64 tcp rails are half of it

struct RailAddress {
    std::uint8_t rail = 0;       // the process's own number for it
    std::string transport;       // rails of different transports never reach each other
    std::uint64_t identity = 0;  // rail_identity.hpp; 0: it cannot be told again
    std::vector<std::byte> address;
};

struct ProcessAddress {
    std::uint64_t instance = 0;  // random for each context: a process that restarts is another instance
    std::uint32_t rank = no_rank;
    std::uint32_t pid = 0;
    std::string host;
    std::vector<RailAddress> rails;

    [[nodiscard]] std::vector<std::byte> encode() const;
    /// Nothing when malformed, of another wire version, or over the limits above.
    [[nodiscard]] static std::optional<ProcessAddress> parse(std::span<const std::byte> bytes);
    /// Why parse gives nothing, as an Error(wrong_version, invalid_argument) to throw or to tell.
    [[nodiscard]] static Error refusal(std::span<const std::byte> bytes);
};

}  // namespace railmux::rails

// What a soak does, as a pure function of its seed: both ends of a stream know what its n-th message, put or atomic is, and
// therefore what must arrive.
//
// Threads: values and pure functions.
// Lifetime: own what they hold.
#pragma once

#include <railmux/one_sided.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"

namespace railmux::tools {

/// Raised with every change of what soaking processes say to each other.
inline constexpr std::uint32_t soak_version = 1;

/// A sequence of numbers that look random: splitmix64, the same everywhere.
class SoakRandom {
public:
    constexpr explicit SoakRandom(std::uint64_t seed) noexcept : state_(seed) {}
    [[nodiscard]] std::uint64_t next() noexcept;
    [[nodiscard]] std::uint64_t below(std::uint64_t limit) noexcept { return next() % limit; }
    /// From 0 to `most`: every order of magnitude as often, and powers of two and their neighbours more often than others.
    [[nodiscard]] std::uint64_t size(std::uint64_t most) noexcept;

private:
    std::uint64_t state_;
};

/// Another seed for each of `number`, as good as independent.
[[nodiscard]] std::uint64_t soak_seed(std::uint64_t seed, std::uint64_t number) noexcept;

enum class SoakKind : std::uint8_t { message, put, get, notified, atomic };
inline constexpr std::size_t soak_kinds = 5;
[[nodiscard]] std::string_view to_string(SoakKind kind) noexcept;

/// What all processes of a soak must agree on; member 0 decides.
struct SoakTerms {
    std::uint64_t seed = 0;
    std::uint64_t max_bytes = 1 << 20;
    std::uint64_t window = 8;  ///< messages under way in each direction of a pair
    std::uint64_t kinds = 0;   ///< bit i: SoakKind i; gets go with puts
    base::Nanoseconds time = base::second;

    [[nodiscard]] bool has(SoakKind kind) const noexcept { return (kinds >> static_cast<unsigned>(kind) & 1U) != 0; }
    friend bool operator==(const SoakTerms&, const SoakTerms&) = default;
};

/// What a process lets another one reach, and who it is among those that soak.
struct SoakCard {
    std::uint64_t member = 0;
    RemoteKey own;     ///< memory for the reader of this card alone
    RemoteKey shared;  ///< a word that all add to
    friend bool operator==(const SoakCard&, const SoakCard&) = default;
};

/// The last thing that one side of a stream says: so much there was.
struct SoakEnd {
    std::uint64_t messages = 0;
    std::uint64_t rounds = 0;  ///< of notified puts
    std::uint64_t adds = 0;    ///< to the shared word
    friend bool operator==(const SoakEnd&, const SoakEnd&) = default;
};

struct SoakTally {
    struct Count {
        std::uint64_t operations = 0;
        std::uint64_t bytes = 0;
        friend bool operator==(const Count&, const Count&) = default;
    };
    std::array<Count, soak_kinds> done;  ///< and checked; by kind; messages where they were received
    std::uint64_t faults = 0;
    std::string problem{};  ///< the first fault

    void add(SoakKind kind, std::uint64_t bytes) noexcept;
    [[nodiscard]] std::uint64_t operations() const noexcept;
    void operator+=(const SoakTally& other);
    friend bool operator==(const SoakTally&, const SoakTally&) = default;
};

inline constexpr std::size_t soak_control_limit = 1024;  ///< bytes of each of these on the wire, at most

[[nodiscard]] std::vector<std::byte> encode(const SoakTerms& terms);
[[nodiscard]] std::vector<std::byte> encode(const SoakCard& card);
[[nodiscard]] std::vector<std::byte> encode(const SoakEnd& end);
[[nodiscard]] std::vector<std::byte> encode(const SoakTally& tally);
/// Throw Error(protocol), or Error(wrong_version) if the other side's tool is of another version.
[[nodiscard]] SoakTerms decode_soak_terms(std::span<const std::byte> bytes);
[[nodiscard]] SoakCard decode_soak_card(std::span<const std::byte> bytes);
[[nodiscard]] SoakEnd decode_soak_end(std::span<const std::byte> bytes);
[[nodiscard]] SoakTally decode_soak_tally(std::span<const std::byte> bytes);

/// A stream is all that one member does to another one.
[[nodiscard]] std::uint64_t soak_stream(std::uint64_t seed, std::uint64_t from, std::uint64_t to) noexcept;

/// A message, or a put, of a stream.
struct SoakItem {
    std::uint64_t bytes = 0;
    std::uint64_t content = 0;  ///< seed of its bytes
    std::uint64_t tag = 0;      ///< messages only: one of few
    std::uint64_t parts = 1;    ///< of the gather list
    std::uint64_t extra = 0;    ///< bytes by which the receive's buffer is longer
};
[[nodiscard]] SoakItem soak_item(std::uint64_t stream, SoakKind kind, std::uint64_t number,
                                 std::uint64_t most) noexcept;

/// Fills a message or put, or finds its first wrong byte.
void write_content(std::span<std::byte> bytes, std::uint64_t content) noexcept;
[[nodiscard]] std::optional<std::size_t> first_wrong(std::span<const std::byte> bytes, std::uint64_t content) noexcept;

/// Whose bytes these are, if not those of message `number`: "the content of message 17", or an empty text if that cannot be
/// told. Looks at messages near it.
[[nodiscard]] std::string whose_content(std::span<const std::byte> bytes, std::uint64_t stream, std::uint64_t number,
                                        std::uint64_t most);

}  // namespace railmux::tools

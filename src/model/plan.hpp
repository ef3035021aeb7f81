// Plans: which trains a probe sends, in which order.
//
// Threads: pure functions over values.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace railmux::model {

enum class StepKind : std::uint8_t {
    single,   // PRTT(1,0,s)
    train,    // PRTT(n,0,s)
    delayed,  // PRTT(n,d,s)
    late,     // a single message whose reply is looked at late: o_r
};

struct Step {
    StepKind kind = StepKind::single;
    std::uint64_t bytes = 1;
    std::uint32_t n = 1;
    friend constexpr bool operator==(const Step&, const Step&) noexcept = default;
};

/// The bounds of a quick probe.
struct QuickLimits {
    static constexpr std::uint32_t messages = 64;  // requests and replies together
    static constexpr std::uint64_t bytes = 256 << 10;
    static constexpr std::int64_t time_ns = 10'000'000;
    static constexpr std::uint64_t second_size = 1024;  // large enough to see G, small enough for the slowest rail
    static constexpr std::uint64_t large_size = 8192;   // 27 of them are in three rounds: 216 KiB
};

/// The first two steps show how fast the rail is about; they decide the large size of the rest.
[[nodiscard]] std::vector<Step> quick_opening(std::uint64_t max_bytes);
[[nodiscard]] std::vector<Step> quick_rounds(std::uint64_t large);
/// The large size for a rail with this round trip and G: so that three rounds end in time.
[[nodiscard]] std::uint64_t quick_large(double round_trip_ns, double ns_per_byte, std::uint64_t max_bytes) noexcept;

/// At most 8 messages.
[[nodiscard]] std::vector<Step> verify_steps(double ns_per_byte, std::uint64_t max_bytes);

/// 1, some sizes below the first step, and `count` sizes at equal distances up to `max_bytes`.
[[nodiscard]] std::vector<std::uint64_t> linear_grid(std::uint64_t max_bytes, std::uint32_t count);
/// Sizes to add where ranges end: three between the two sizes of each change, and one beside each of them.
[[nodiscard]] std::vector<std::uint64_t> denser(std::span<const std::uint64_t> sizes,
                                                std::span<const std::uint64_t> range_ends);
/// Of those, the three between: where the two sizes of a change are more than an eighth apart. What is between them may belong
/// to the one protocol or the other.
[[nodiscard]] std::vector<std::uint64_t> where_wide(std::span<const std::uint64_t> sizes,
                                                    std::span<const std::uint64_t> range_ends);
/// Sizes of large messages, beyond those up to `from`: four for each doubling up to `to`. Empty if `to` is no larger.
[[nodiscard]] std::vector<std::uint64_t> large_grid(std::uint64_t from, std::uint64_t to);
/// All sizes, `rounds` times over: what disturbs the machine for a moment meets all sizes a little, none much. Sizes in
/// the lowest quarter of those up to `usual`, which cost little and decide L, o and g, come three or four times as often, and
/// one byte, whose round trip is L, still more often. Single messages come before the trains of a round, but for the first:
/// after those they find less of what they need in caches. Those beyond `usual` come in short trains, in one round of
/// `large_every`.
[[nodiscard]] std::vector<Step> full_rounds(std::span<const std::uint64_t> sizes, std::uint64_t usual,
                                            std::uint32_t rounds, std::uint32_t n, std::uint32_t large_every);

}  // namespace railmux::model

// LogGP: how long messages take over one link, as measured. One set of parameters for each range of sizes, because most
// networks change their protocol with size.
//
// For a message of s bytes (a message of none counts as one):
//   delivery   = L(s) + o_s(s) + o_r(s) + (s-1) G + jitter     from the call that sends it to its being received
//   rail       = g + (s-1) G                                   until the rail can start the next one
//   sender_cpu = o_s(s)                                        until the sender's CPU can do something else
// The letters are those of the literature; docs/model.md tells how each is measured and how it compares with what other
// tools report.
//
// Threads: plain values.
// Lifetime: own what they hold.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/error.hpp>

namespace railmux {

/// A span of time. The parameters of fast networks are fractions of a nanosecond, so it counts in doubles.
using Nanos = std::chrono::duration<double, std::nano>;

/// Time for each byte; the inverse of a bandwidth.
struct PerByte {
    double ns = 0;

    [[nodiscard]] constexpr Nanos of(std::uint64_t bytes) const noexcept {
        return Nanos(ns * static_cast<double>(bytes));
    }
    /// Infinite for a time of 0.
    [[nodiscard]] constexpr double bits_per_second() const noexcept {
        return ns > 0 ? 8e9 / ns : std::numeric_limits<double>::infinity();
    }
    [[nodiscard]] static constexpr PerByte at(double bits_per_second) noexcept { return {8e9 / bits_per_second}; }
    friend constexpr bool operator==(PerByte, PerByte) noexcept = default;
};

/// A time that grows with the size of the message: fixed + per_byte * s.
struct Linear {
    Nanos fixed{0};
    PerByte per_byte{};

    [[nodiscard]] constexpr Nanos of(std::uint64_t bytes) const noexcept { return fixed + per_byte.of(bytes); }
    friend constexpr bool operator==(const Linear&, const Linear&) noexcept = default;
};

/// How far each parameter can be trusted: 0 is a guess, 1 a number that repeated measurements agree on.
struct Confidence {
    double L = 0;
    double o_s = 0;
    double o_r = 0;
    double g = 0;
    double G = 0;

    [[nodiscard]] double least() const noexcept;
    friend constexpr bool operator==(const Confidence&, const Confidence&) noexcept = default;
};

/// The parameters of one protocol.
struct ProtocolRange {
    std::uint64_t up_to_bytes = std::numeric_limits<std::uint64_t>::max();  ///< the last size it holds for
    /// Latency. Its part per byte is what a byte takes beyond G, o_s and o_r: hops that store a message whole before
    /// they send it on, copies made by kernels. 0 where the network passes bytes through. Where a message is delivered
    /// before the call that sends it returns, as on a loopback interface, o_s counts too much and L makes up for it: it
    /// may be negative. Only the sum means something then.
    Linear L{};
    Linear o_s{};  ///< the sender's CPU
    Linear o_r{};  ///< the receiver's CPU
    Nanos g{0};    ///< from the start of a message of one byte to the earliest start of the next
    PerByte G{};   ///< for each further byte
    Confidence confidence{};
    friend constexpr bool operator==(const ProtocolRange&, const ProtocolRange&) noexcept = default;
};

/// What a message will take; see the formulas above.
struct Prediction {
    Nanos delivery{0};
    Nanos rail{0};
    Nanos sender_cpu{0};
};

/// The model of one link, in one direction.
struct LogGP {
    std::vector<ProtocolRange> ranges{ProtocolRange{}};  ///< by ascending up_to_bytes; the last one has the maximum
    Nanos half_round_trip{0};  ///< of one byte, as measured: what most other tools report as latency; 0: not measured
    Nanos jitter{0};           ///< what deliveries typically (in the median) take beyond the best ones

    static constexpr std::size_t max_ranges = 16;

    [[nodiscard]] const ProtocolRange& range(std::uint64_t bytes) const noexcept;
    /// No allocation and no division; some nanoseconds.
    [[nodiscard]] Prediction predict(std::uint64_t bytes) const noexcept;
    /// The least confidence of any range.
    [[nodiscard]] double confidence() const noexcept;

    friend bool operator==(const LogGP&, const LogGP&) noexcept = default;
};

/// Lines for people and files; times in ns, G in ns per byte:
///   loggp 1 half_round_trip=13070 jitter=0
///   range up_to=32769 L=10530,0 o_s=1270,0 o_r=1270,0 g=9440 G=9.2 confidence=1,1,1,1,1
/// The pair after L, o_s and o_r is the fixed part and the part per byte. Numbers are the shortest that read back exact.
[[nodiscard]] std::string to_text(const LogGP& model);
[[nodiscard]] std::string to_json(const LogGP& model);

/// Read what the functions above wrote; the text may come from anywhere. Throw Error(invalid_argument) that names what
/// is wrong and where; what they return satisfies valid().
[[nodiscard]] LogGP loggp_from_text(std::string_view text);
[[nodiscard]] LogGP loggp_from_json(std::string_view json);

/// Whether the numbers can be a model: finite, in bounds, ranges ascending.
[[nodiscard]] bool valid(const LogGP& model) noexcept;

}  // namespace railmux

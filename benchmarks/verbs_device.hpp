// What goes to verbs devices, counted between a program and the library of the device; and what the device is made to do in
// another way. Linking verbs_device.cpp puts it there.
//
// Threads: one.
// Lifetime: the program.
#pragma once

#include <array>
#include <cstdint>

#include "rails/frame.hpp"

namespace device {

/// Of all devices together.
struct Counts {
    std::array<std::uint64_t, 256> sends{};  // frames, by type
    std::uint64_t credits = 0;               // messages of nothing but credit
    std::uint64_t writes = 0;
    std::uint64_t reads = 0;
    std::uint64_t calls = 0;     // that handed over work requests
    std::uint64_t receives = 0;  // posted

    [[nodiscard]] std::uint64_t of(railmux::rails::FrameType type) const noexcept {
        return sends[static_cast<std::uint8_t>(type)];
    }
    /// Those with application data or about it: neither acknowledgements nor credits.
    [[nodiscard]] std::uint64_t frames() const noexcept;
    [[nodiscard]] std::uint64_t requests() const noexcept;
    friend Counts operator-(Counts a, const Counts& b) noexcept;
};

[[nodiscard]] const Counts& counts() noexcept;

/// Whether work requests posted together stay so, or each goes by a call of its own.
void chain(bool chained) noexcept;
/// Queue pairs made from now on have a completion queue for what is received, besides the one for what is sent.
void make_two_queues(bool two) noexcept;

// Instructions counted by callgrind (--collect-atstart=no). What the device's own library executes is not among them.
void meter_until_post(bool wanted) noexcept;       // from now until work requests are handed over
void meter_from_completion(bool wanted) noexcept;  // from the next completion of a receive until stop_metering
void stop_metering() noexcept;
[[nodiscard]] bool metering() noexcept;

}  // namespace device

// Entries of the store: the model of one pair of rails as a file that is checked in full before anything of it is used.
//
//   railmux-model 1
//   version 0.1.0
//   local 5d1c0a7be2f94c11
//   remote 83f00b1d6a5e2c47
//   link host-a tcp:eth1 to host-b
//   loggp 1 half_round_trip=13070 jitter=0
//   range up_to=18446744073709551615 L=10530,0 ...
//   checksum 9c0d...
//
// Threads: pure functions.
// Lifetime: values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <railmux/loggp.hpp>

#include "base/result.hpp"

namespace railmux::model {

/// A pair of rails as it is known again in later runs: what each side's rails::rail_identity says. 0: cannot be known again.
struct StoreKey {
    std::uint64_t local = 0;
    std::uint64_t remote = 0;
    [[nodiscard]] constexpr bool usable() const noexcept { return local != 0 && remote != 0; }
    friend constexpr bool operator==(const StoreKey&, const StoreKey&) noexcept = default;
};

struct StoreEntry {
    static constexpr std::size_t max_bytes = 16 << 10;  // 16 ranges with the longest numbers are 6 KiB
    static constexpr std::size_t max_name = 200;        // bytes of version and link each

    StoreKey key;
    std::string version;  // of railmux: another one may measure differently, or take another time for the same
    std::string link;     // for people; see for_people
    LogGP model;

    /// Throws Error(system) when the crypto library refuses, as do the others.
    [[nodiscard]] std::string text() const;
    /// Error(invalid_argument) that says what is wrong, in one clause, when the bytes are not exactly what text() gives for
    /// some entry with a model that is valid().
    [[nodiscard]] static base::Result<StoreEntry> parse(std::string_view text);

    /// The file it is kept in: one for each key and version.
    [[nodiscard]] static std::string file_name(const StoreKey& key, std::string_view version);
    [[nodiscard]] static bool is_file_name(std::string_view name) noexcept;

    /// StoreEntry::link of a rail of this host; `to` is the other end's host. With none it is how all of that rail begin.
    [[nodiscard]] static std::string link_from(std::string_view host, std::string_view rail, std::string_view to);

    /// What fits StoreEntry::link of a text that comes from anywhere: printable, and not too long.
    [[nodiscard]] static std::string for_people(std::string_view text);
};

/// `body` with the line that proves it undamaged. It proves nothing else: whoever may write the file may write the line.
[[nodiscard]] std::string with_checksum(std::string body);

}  // namespace railmux::model

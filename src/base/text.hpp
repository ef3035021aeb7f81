// Small text work: trimming, splitting, and the nearest known word for a misspelt one.
//
// Threads: pure functions.
// Lifetime: results that are string_views view the argument.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railmux::base {

/// Without blanks, tabs and line ends at both ends.
[[nodiscard]] std::string_view trim(std::string_view text) noexcept;

/// The trimmed parts between separators; empty parts are kept, so that a parser can refuse them.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

/// The known word with the fewest edits (insert, delete, replace, swap of neighbours, letter case aside); empty when
/// every word needs more than a third of its letters changed: a far-fetched guess helps nobody.
[[nodiscard]] std::string nearest(std::string_view word, std::span<const std::string> known);

/// ` (did you mean "x"?)`, or nothing when no known word is near.
[[nodiscard]] std::string did_you_mean(std::string_view word, std::span<const std::string> known);

/// "eth0, eth1, lo".
[[nodiscard]] std::string join(std::span<const std::string> words, std::string_view separator = ", ");

}  // namespace railmux::base

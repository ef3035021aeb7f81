// Message sizes as people write them: "64K", and lists: "8,64,4K", "1-1M".
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace railmux::tools {

/// One size. Throws UsageError naming the option and the text.
[[nodiscard]] std::uint64_t parse_size(std::string_view option, std::string_view text);

/// Sizes separated by commas; FIRST-LAST doubles from the first and ends with the last ("0-4": 0, 1, 2, 4). The order
/// is kept. Throws UsageError naming the option, --sizes, and the item.
[[nodiscard]] std::vector<std::uint64_t> parse_sizes(std::string_view text);

}  // namespace railmux::tools

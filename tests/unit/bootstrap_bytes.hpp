// A text as the bytes that travel, for the tests of bootstrap.
//
// Threads: any.
// Lifetime: none.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace railmux::bootstrap::test {

[[nodiscard]] inline std::vector<std::byte> bytes(std::string_view text) {
    const auto view = std::as_bytes(std::span(text));
    return {view.begin(), view.end()};
}

}  // namespace railmux::bootstrap::test

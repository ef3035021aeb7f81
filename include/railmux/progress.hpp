// How a context waits, and who moves it on meanwhile: the modes of the parameter `progress` (docs/progress.md).
//
// Threads: plain values.
// Lifetime: none.
#pragma once

#include <cstdint>
#include <string_view>

namespace railmux {

enum class ProgressMode : std::uint8_t {
    poll,    ///< who waits looks at the rails all the time: the fastest answer, and a core for it
    block,   ///< who waits sleeps until something comes: no CPU while nothing does
    hybrid,  ///< who waits looks for about as long as an answer takes, and then sleeps
    thread,  ///< as hybrid; besides, a thread of the context moves everything on while nobody waits
};

/// The mode as the parameter names it, e.g. "hybrid".
[[nodiscard]] std::string_view to_string(ProgressMode mode) noexcept;

}  // namespace railmux

// What OpenSSL says when something fails: in a queue of each thread, which the application may use as well.
//
// Threads: any; each sees its own errors.
// Lifetime: functions without state.
#pragma once

#include <fmt/format.h>
#include <openssl/err.h>

#include <string>
#include <string_view>

#include <railmux/error.hpp>

namespace railmux::transports::tcp {

inline std::string crypto_reason() {
    const auto* reason = ERR_reason_error_string(ERR_peek_last_error());
    return reason == nullptr ? "unknown reason" : reason;
}

/// What others left in this thread's queue would be taken for errors of the next call. Clearing it costs more than looking.
inline void forget_errors() noexcept {
    if (ERR_peek_error() != 0) ERR_clear_error();
}

inline void require_crypto(bool good, std::string_view what) {
    if (!good) throw Error(ErrorCode::system, fmt::format("the crypto library has no {}: {}", what, crypto_reason()));
}

}  // namespace railmux::transports::tcp

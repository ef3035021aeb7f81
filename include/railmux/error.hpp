// Errors of the public API: stable codes, and the exception thrown by set-up and misuse.
//
// Threads: values; use them from anywhere.
// Lifetime: an Error owns its texts.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace railmux {

/// What went wrong. The numbers are stable: they may be logged, compared and sent to other programs.
enum class ErrorCode : std::uint16_t {
    ok = 0,
    invalid_argument = 1,  ///< a call broke the API's rules
    invalid_config = 2,    ///< a parameter, environment variable or config file line is malformed
    no_rails = 3,          ///< no usable rail is left after selection
    address_in_use = 4,    ///< the port to listen on is taken
    unreachable = 5,  ///< no rail reached the peer in connect.patience; or in recover.patience, if all links were lost
    wrong_key = 6,    ///< the other side does not know the job's key
    wrong_version = 7,  ///< the other side speaks another wire version, or one of the two encrypts and the other not
    peer_lost = 8,      ///< the peer's process ended without leaving, or another one, or a new session, took its place
    peer_left = 9,      ///< the peer closed its context while the operation was under way
    truncated = 10,     ///< the message was longer than the receive buffer; the front part arrived
    cancelled = 11,  ///< cancelled before it matched; or the region of an inotified was destroyed, or its context left
    timed_out = 12,  ///< took longer than its limit; accept and flush of Context return nothing or false instead
    out_of_memory = 13,  ///< memory could not be allocated, registered or locked
    protocol = 14,       ///< the other side sent bytes that break the wire protocol
    permission = 15,     ///< the operating system refused
    system = 16,         ///< another operating-system error; the text has it
    bootstrap = 17,      ///< the job's key-value exchange failed
    access_denied = 18,  ///< remote access outside a registration, with a wrong key or without the right
};

/// The enumerator's name, e.g. "peer_lost".
[[nodiscard]] std::string_view to_string(ErrorCode code) noexcept;

/// Thrown by set-up calls and on misuse. `what()` is one sentence naming the thing concerned and the cause;
/// `cure()` says what to do about it. Nothing throws out of progress: operations under way report through
/// their Request.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, const std::string& what, std::string cure = {});

    [[nodiscard]] ErrorCode code() const noexcept { return code_; }
    [[nodiscard]] const std::string& cure() const noexcept { return cure_; }

private:
    ErrorCode code_;
    std::string cure_;
};

}  // namespace railmux

#include <railmux/error.hpp>

#include <utility>

namespace railmux {

std::string_view to_string(ErrorCode code) noexcept {
    switch (code) {
        case ErrorCode::ok: return "ok";
        case ErrorCode::invalid_argument: return "invalid_argument";
        case ErrorCode::invalid_config: return "invalid_config";
        case ErrorCode::no_rails: return "no_rails";
        case ErrorCode::address_in_use: return "address_in_use";
        case ErrorCode::unreachable: return "unreachable";
        case ErrorCode::wrong_key: return "wrong_key";
        case ErrorCode::wrong_version: return "wrong_version";
        case ErrorCode::peer_lost: return "peer_lost";
        case ErrorCode::peer_left: return "peer_left";
        case ErrorCode::truncated: return "truncated";
        case ErrorCode::cancelled: return "cancelled";
        case ErrorCode::timed_out: return "timed_out";
        case ErrorCode::out_of_memory: return "out_of_memory";
        case ErrorCode::protocol: return "protocol";
        case ErrorCode::permission: return "permission";
        case ErrorCode::system: return "system";
        case ErrorCode::bootstrap: return "bootstrap";
        case ErrorCode::access_denied: return "access_denied";
    }
    return "unknown";
}

Error::Error(ErrorCode code, const std::string& what, std::string cure)
    : std::runtime_error(what), code_(code), cure_(std::move(cure)) {}

}  // namespace railmux

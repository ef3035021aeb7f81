// UsageError: the command line cannot be obeyed. The command ends with exit code 2.
//
// Threads: a value.
// Lifetime: owns its texts.
#pragma once

#include <railmux/error.hpp>

#include <string>
#include <utility>

namespace railmux::tools {

class UsageError : public Error {
public:
    explicit UsageError(const std::string& what, std::string cure = {})
        : Error(ErrorCode::invalid_argument, what, std::move(cure)) {}
};

}  // namespace railmux::tools

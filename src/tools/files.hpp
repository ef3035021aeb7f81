// Files that a command writes.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <railmux/error.hpp>

#include <fstream>
#include <string>

namespace railmux::tools {

/// Throws Error when it cannot.
inline void write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    if (!file.flush()) throw Error(ErrorCode::system, path + " cannot be written", "check the folder and its rights");
}

}  // namespace railmux::tools

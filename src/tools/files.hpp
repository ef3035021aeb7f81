// Files that a command writes.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <railmux/error.hpp>

#include <fstream>
#include <functional>
#include <ostream>
#include <string>

namespace railmux::tools {

/// Throws Error when it cannot.
inline void write_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
    std::ofstream file(path);
    write(file);
    if (!file.flush()) throw Error(ErrorCode::system, path + " cannot be written", "check the folder and its rights");
}
inline void write_file(const std::string& path, const std::string& text) {
    write_file(path, [&](std::ostream& file) { file << text; });
}

}  // namespace railmux::tools

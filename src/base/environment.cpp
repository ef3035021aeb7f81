#include "base/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

namespace railmux::base {

std::optional<std::string> variable(const std::string& name) {
    const char* value = std::getenv(name.c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
}

std::vector<std::pair<std::string, std::string>> variables(std::string_view prefix) {
    std::vector<std::pair<std::string, std::string>> found;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text(*entry);
        const auto equals = text.find('=');
        if (!text.starts_with(prefix) || equals == text.npos || equals + 1 == text.size()) continue;
        found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
    return found;
}

std::string runtime_folder() {
    if (const auto run = variable("XDG_RUNTIME_DIR"); run && run->starts_with('/')) return *run + "/railmux";
    return (std::filesystem::temp_directory_path() / ("railmux-" + std::to_string(::geteuid()))).string();
}

std::optional<std::string> cache_folder() {
    if (auto cache = variable("XDG_CACHE_HOME"); cache && cache->starts_with('/')) return cache;
    if (const auto home = variable("HOME"); home && home->starts_with('/')) return *home + "/.cache";
    return std::nullopt;
}

}  // namespace railmux::base

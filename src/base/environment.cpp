#include "base/environment.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
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

std::string host_name() {
    std::array<char, 256> buffer{};
    if (gethostname(buffer.data(), buffer.size() - 1) != 0) return "localhost";
    const std::string_view name(buffer.data());
    const auto label = name.substr(0, name.find('.'));
    return label.empty() ? "localhost" : std::string(label);
}

}  // namespace railmux::base

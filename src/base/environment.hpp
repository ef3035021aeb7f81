// The process environment; nothing else in railmux reads it.
//
// Threads: as getenv: not while another thread changes the environment.
// Lifetime: results are copies.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace railmux::base {

/// The variable's value; nothing when it is unset or empty (an empty value is how shells unset for one command).
[[nodiscard]] std::optional<std::string> variable(const std::string& name);

/// All set variables whose name starts with `prefix`, as name and value.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> variables(std::string_view prefix);

/// Where this user's programs keep what they can make again: XDG_CACHE_HOME, or .cache in their HOME. Nothing when neither is
/// an absolute path (the XDG Base Directory Specification ignores relative ones).
[[nodiscard]] std::optional<std::string> cache_folder();

/// Where this user's programs leave what others of them need while they run: a folder in XDG_RUNTIME_DIR, or else one that has
/// the user's number in its name, among the temporary files. It need not be there yet, and may be anybody's: see PrivateFolder.
[[nodiscard]] std::string runtime_folder();

}  // namespace railmux::base

// The parameter table: environment, config files, the API and `railmux info --config` all come from it.
//
// Threads: constant data and pure functions.
// Lifetime: static.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace railmux::base {

enum class ParameterType { bytes, count, duration, flag, choice, selector, speeds, ports, text, secret };

/// One row of the table.
struct ParameterSpec {
    std::string_view name;
    ParameterType type = ParameterType::text;
    std::string_view unit{};         // what a plain number counts; empty where there is none
    std::string_view default_value;  // as a user would write it
    std::string_view help;           // one line
    std::string_view choices{};      // choice: the words, separated by |
    std::uint64_t at_least = 0;      // bytes, count, duration (in nanoseconds)
    std::uint64_t at_most = std::numeric_limits<std::uint64_t>::max();
};

[[nodiscard]] std::span<const ParameterSpec> parameter_table() noexcept;
[[nodiscard]] std::optional<std::size_t> find_parameter(std::string_view name) noexcept;

/// "tcp.interfaces" -> "RAILMUX_TCP_INTERFACES".
[[nodiscard]] std::string variable_name(std::string_view parameter);

/// All names, or all variables, for finding the nearest to a misspelt one.
[[nodiscard]] std::vector<std::string> parameter_names();
[[nodiscard]] std::vector<std::string> variable_names();

/// The limits of a parameter that has some, "from 0 to 16K"; else nothing.
[[nodiscard]] std::string range_of(const ParameterSpec& spec);

/// "bytes", "choice", ...; a secret is a text to the outside.
[[nodiscard]] std::string_view to_string(ParameterType type) noexcept;

/// The value as a number: bytes, count, nanoseconds, flag as 0 or 1; 0 for the types that are texts. Throws
/// Error(invalid_config) whose text begins with `where` and says what is allowed.
[[nodiscard]] std::uint64_t check_value(const ParameterSpec& spec, std::string_view value, std::string_view where);

}  // namespace railmux::base

// Every parameter of railmux: its value, and where the value came from.
//
// Threads: a value type without hidden sharing; one thread at a time per object.
// Lifetime: a Context copies the Config it is given; later changes do not reach it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace railmux {

/// One row of the parameter table, as `railmux info --config --json` prints it.
struct Parameter {
    std::string name;      ///< e.g. "tcp.interfaces"
    std::string variable;  ///< environment variable, e.g. "RAILMUX_TCP_INTERFACES"
    std::string type;      ///< "bytes", "count", "duration", "flag", "choice", "selector", "speeds", "ports",
                           ///< "text"
    std::string unit;      ///< "B", "us", ... or empty
    std::string default_value;
    std::string help;  ///< one line
    std::string value;
    std::string source;  ///< "default", "file PATH:LINE", "environment", "api"
};

/// The parameters. Precedence, lowest first: defaults, config file, environment, calls of set().
class Config {
public:
    /// Built-in defaults only.
    Config();

    /// Defaults, then the file named by RAILMUX_CONFIG (if any), then the environment. A malformed value throws
    /// Error(invalid_config) naming the variable or the file and line. Unknown RAILMUX_* variables are collected
    /// as warnings() with their nearest match.
    [[nodiscard]] static Config load();

    /// Reads `name = value` lines (`#` comments). Throws Error(invalid_config) naming file and line.
    void read_file(const std::string& path);

    /// Sets a parameter by name ("tcp.interfaces"). Throws Error(invalid_config) when the name is unknown (naming the
    /// nearest one) or the value malformed.
    Config& set(std::string_view name, std::string_view value);

    /// Typed reads. Sizes are in bytes, durations in nanoseconds. Throws Error(invalid_argument) on an unknown name or
    /// the wrong type: a programming error.
    [[nodiscard]] std::string text(std::string_view name) const;
    [[nodiscard]] std::uint64_t number(std::string_view name) const;
    [[nodiscard]] bool flag(std::string_view name) const;
    /// Whether a file, the environment or set() gave it a value. Throws Error(invalid_argument) on an unknown name.
    [[nodiscard]] bool is_set(std::string_view name) const;

    /// The whole table with current values and their sources, in the table's order.
    [[nodiscard]] std::vector<Parameter> parameters() const;

    /// Texts of warnings met by load(): unknown RAILMUX_* variables and the like.
    [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

private:
    struct Value {
        std::string text;
        std::uint64_t number = 0;
        std::string source;
    };
    void assign(std::size_t index, std::string_view value, std::string source);
    void read_environment();

    std::vector<Value> values_;  // parallel to the table in src/base/parameters.cpp
    std::vector<std::string> warnings_;
};

}  // namespace railmux

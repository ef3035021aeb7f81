// Log lines for people: lowercase, naming rail, peer, operation, cause and next step.
//
// Threads: a Logger may be used from any thread.
// Lifetime: owned by the context (or tool) and outlives everything that was given a reference to it.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace railmux::base {

enum class LogLevel { debug, info, warning, error, off };

/// Whoever detects a failure first logs it, once; everyone else passes it on.
class Logger {
public:
    /// Writes to standard error, each line with `prefix` ("railmux[3]: ") in front.
    explicit Logger(LogLevel level = LogLevel::warning, std::string prefix = "railmux: ");
    ~Logger();
    Logger(const Logger&) = delete;
    Logger& operator=(const Logger&) = delete;

    [[nodiscard]] bool enabled(LogLevel level) const noexcept { return level >= level_; }

    template <typename... Args>
    void debug(fmt::format_string<Args...> text, Args&&... args) {
        write(LogLevel::debug, text, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void info(fmt::format_string<Args...> text, Args&&... args) {
        write(LogLevel::info, text, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void warning(fmt::format_string<Args...> text, Args&&... args) {
        write(LogLevel::warning, text, std::forward<Args>(args)...);
    }
    template <typename... Args>
    void error(fmt::format_string<Args...> text, Args&&... args) {
        write(LogLevel::error, text, std::forward<Args>(args)...);
    }

    /// What was asked for by a parameter of its own: shown whatever the level.
    template <typename... Args>
    void always(fmt::format_string<Args...> text, Args&&... args) {
        line(LogLevel::off, fmt::format(text, std::forward<Args>(args)...));  // no level is above it
    }

private:
    template <typename... Args>
    void write(LogLevel level, fmt::format_string<Args...> text, Args&&... args) {
        if (enabled(level)) line(level, fmt::format(text, std::forward<Args>(args)...));
    }
    void line(LogLevel level, std::string_view text);

    LogLevel level_;
    std::string prefix_;
    struct Sink;  // hides the logging library
    std::unique_ptr<Sink> sink_;
};

/// "debug", "info", "warning", "error" or "off"; throws Error(invalid_config) otherwise.
[[nodiscard]] LogLevel parse_log_level(std::string_view text);

}  // namespace railmux::base

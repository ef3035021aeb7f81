#include "base/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include <railmux/error.hpp>

namespace railmux::base {
namespace {

// One write a line: lines of several processes that share a terminal or a pipe stay whole.
class StandardError final : public spdlog::sinks::base_sink<std::mutex> {
protected:
    void sink_it_(const spdlog::details::log_msg& message) override {
        const std::string_view text(message.payload.data(), message.payload.size());
        // Nothing can be done about a log line that cannot be written.
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
    }
    void flush_() override {}
};

std::string_view label(LogLevel level) noexcept {
    switch (level) {
        case LogLevel::debug: return "debug: ";
        case LogLevel::warning: return "warning: ";
        case LogLevel::error: return "error: ";
        case LogLevel::info:
        case LogLevel::off: return "";
    }
    return "";
}

spdlog::level::level_enum to_spdlog(LogLevel level) noexcept {
    switch (level) {
        case LogLevel::debug: return spdlog::level::debug;
        case LogLevel::info: return spdlog::level::info;
        case LogLevel::warning: return spdlog::level::warn;
        case LogLevel::error: return spdlog::level::err;
        case LogLevel::off: return spdlog::level::off;
    }
    return spdlog::level::off;
}

}  // namespace

struct Logger::Sink {
    // Not in spdlog's registry: the library has no global state.
    spdlog::logger logger{"railmux", std::make_shared<StandardError>()};
};

Logger::Logger(LogLevel level, std::string prefix)
    : level_(level), prefix_(std::move(prefix)), sink_(std::make_unique<Sink>()) {
    sink_->logger.set_level(to_spdlog(level));
}

Logger::~Logger() = default;

void Logger::line(LogLevel level, std::string_view text) {
    auto whole = fmt::format("{}{}{}", prefix_, label(level), text);
    // Texts may quote what a stranger sent: no control character gets out, so nobody forges a line.
    std::replace_if(
        whole.begin(), whole.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    whole += '\n';
    sink_->logger.log(to_spdlog(level), spdlog::string_view_t(whole));
}

LogLevel parse_log_level(std::string_view text) {
    if (text == "debug") return LogLevel::debug;
    if (text == "info") return LogLevel::info;
    if (text == "warning") return LogLevel::warning;
    if (text == "error") return LogLevel::error;
    if (text == "off") return LogLevel::off;
    throw Error(ErrorCode::invalid_config,
                fmt::format("log level \"{}\": expected debug, info, warning, error or off", text));
}

}  // namespace railmux::base

// Traces and replays as text and as JSON.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "trace/analysis.hpp"
#include "trace/replay.hpp"

namespace railmux::tools {

/// "rank 2 (host-b)" or "host-b:4711": whose trace it is.
[[nodiscard]] std::string process_of(const trace::Header& header);

[[nodiscard]] std::string trace_table(std::span<const trace::Trace> traces, std::span<const trace::RailResult> rails);
[[nodiscard]] nlohmann::ordered_json trace_json(std::span<const trace::Trace> traces,
                                                std::span<const trace::RailResult> rails);

[[nodiscard]] std::string replay_table(const trace::Trace& trace, std::span<const trace::ReplayResult> results);
[[nodiscard]] nlohmann::ordered_json replay_json(const trace::Trace& trace,
                                                 std::span<const trace::ReplayResult> results);

/// One line. Names in a file may be no UTF-8: what is not is replaced.
[[nodiscard]] std::string one_line(const nlohmann::ordered_json& document);

}  // namespace railmux::tools

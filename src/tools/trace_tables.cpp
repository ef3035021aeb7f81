#include "tools/trace_tables.hpp"

#include <fmt/format.h>

#include "tools/inventory.hpp"

namespace railmux::tools {
namespace {

std::string us(double ns) { return fmt::format("{:.2f}", ns / 1000); }
std::string us(base::Nanoseconds ns) { return us(static_cast<double>(ns)); }
std::string percent(double part) { return fmt::format("{:.1f}", part * 100); }

/// What there is in `trace` altogether.
nlohmann::ordered_json summary(const trace::Trace& trace) {
    return {{"process", process_of(trace.header)},
            {"policy", trace.header.policy},
            {"frames", trace.decisions.size()},
            {"cut", trace.cut}};
}

}  // namespace

std::string process_of(const trace::Header& header) {
    return header.rank == trace::no_rank ? fmt::format("{}:{}", header.host, header.pid)
                                         : fmt::format("rank {} ({})", header.rank, header.host);
}

std::string trace_table(std::span<const trace::Trace> traces, std::span<const trace::RailResult> rails) {
    std::string text;
    for (const auto& trace : traces) {
        text += fmt::format("# {}, policy {}, {} frames\n", process_of(trace.header), trace.header.policy,
                            trace.decisions.size());
    }
    std::vector<std::vector<std::string>> rows{{"rail", "frames", "bytes", "share %", "timed", "error % median",
                                                "error % p90", "regret us mean", "regret us most", "regretted %"}};
    for (const auto& rail : rails) {
        const bool timed = rail.timed > 0;
        const bool compared = rail.compared > 0;
        const auto regretted = static_cast<double>(rail.regretted) / static_cast<double>(compared ? rail.compared : 1);
        rows.push_back({rail.rail, std::to_string(rail.frames), std::to_string(rail.bytes), percent(rail.share),
                        std::to_string(rail.timed), timed ? percent(rail.error_median) : "-",
                        timed ? percent(rail.error_p90) : "-", compared ? us(rail.regret_mean_ns) : "-",
                        compared ? us(rail.regret_most) : "-", compared ? percent(regretted) : "-"});
    }
    return text + aligned(rows);
}

nlohmann::ordered_json trace_json(std::span<const trace::Trace> traces, std::span<const trace::RailResult> rails) {
    auto files = nlohmann::ordered_json::array();
    for (const auto& trace : traces) files.push_back(summary(trace));
    auto results = nlohmann::ordered_json::array();
    for (const auto& rail : rails) {
        results.push_back({{"rail", rail.rail},
                           {"frames", rail.frames},
                           {"bytes", rail.bytes},
                           {"share", rail.share},
                           {"timed", rail.timed},
                           {"error_median", rail.error_median},
                           {"error_p90", rail.error_p90},
                           {"compared", rail.compared},
                           {"regretted", rail.regretted},
                           {"regret_mean_ns", rail.regret_mean_ns},
                           {"regret_most_ns", rail.regret_most}});
    }
    return {{"tool", "trace"}, {"traces", files}, {"results", results}};
}

std::string replay_table(const trace::Trace& trace, std::span<const trace::ReplayResult> results) {
    const auto& first = results.front();
    std::vector<std::vector<std::string>> rows{{"policy", "mean us", "median us", "p99 us", "makespan ms"}};
    for (const auto& result : results) {
        rows.push_back({result.policy, us(result.mean_ns), us(result.median), us(result.p99),
                        fmt::format("{:.3f}", static_cast<double>(result.makespan) / 1e6)});
    }
    return fmt::format("# {}, recorded with {}: {} messages, {} bytes\n", process_of(trace.header), trace.header.policy,
                       first.messages, first.bytes) +
           aligned(rows);
}

nlohmann::ordered_json replay_json(const trace::Trace& trace, std::span<const trace::ReplayResult> results) {
    auto list = nlohmann::ordered_json::array();
    for (const auto& result : results) {
        list.push_back({{"policy", result.policy},
                        {"messages", result.messages},
                        {"bytes", result.bytes},
                        {"mean_ns", result.mean_ns},
                        {"median_ns", result.median},
                        {"p99_ns", result.p99},
                        {"makespan_ns", result.makespan}});
    }
    return {{"tool", "replay"}, {"trace", summary(trace)}, {"results", list}};
}

std::string one_line(const nlohmann::ordered_json& document) {
    return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace railmux::tools

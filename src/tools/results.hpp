// Results and how they are shown: a table for people, CSV, or one JSON object for scripts.
//
// Threads: one thread at a time; the formatting functions are pure.
// Lifetime: owns what it shows.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/assessment.hpp>

#include "tools/driver.hpp"
#include "tools/statistics.hpp"

namespace railmux::tools {

/// One line of a benchmark.
struct Result {
    struct Figure {
        std::string_view name;   ///< in JSON and CSV
        std::string_view title;  ///< of the column in the table
        double value;
    };
    std::uint64_t bytes = 0;
    std::string_view group;  ///< JSON: object that holds the figures; empty: they stand beside `bytes`
    std::vector<Figure> figures;
    RailBytes rails;
};

/// From round trips in nanoseconds.
[[nodiscard]] Result pingpong_result(std::uint64_t bytes, std::span<std::int64_t> round_trips, const RailBytes& rails);
[[nodiscard]] Result bandwidth_result(std::uint64_t bytes, const Outcome& outcome);

/// Of one-sided operations: one at a time, in nanoseconds, and many under way.
[[nodiscard]] Result access_result(std::uint64_t bytes, const Spread& alone, const Outcome& outcome);

/// The sizes that a full probe could not measure, and why, in comment lines; empty if there are none. Nothing was lost of those
/// that were answered while a process was away.
[[nodiscard]] std::string unmeasured_text(const LinkAssessment& link);

[[nodiscard]] nlohmann::ordered_json to_json(const Result& result);
[[nodiscard]] std::string table_header(const Result& result);
[[nodiscard]] std::string table_row(const Result& result);
[[nodiscard]] std::string csv_header(const Result& result);
[[nodiscard]] std::string csv_row(const Result& result);

enum class Format { table, csv, json };

/// Writes results to standard output as they come; JSON when all are there.
class Printer {
public:
    /// `title` heads the table: comment lines.
    Printer(Format format, std::string_view tool, std::string title);

    void add(const Result& result);
    void end();

private:
    Format format_;
    std::string title_;
    bool headed_ = false;
    nlohmann::ordered_json document_;
};

}  // namespace railmux::tools

#include "tools/results.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <numeric>

namespace railmux::tools {
namespace {

// Three decimals: a nanosecond, a kB/s. More would be noise in every output.
double rounded(double value) { return std::round(value * 1000) / 1000; }

std::uint64_t total(const RailBytes& rails) {
    return std::accumulate(rails.begin(), rails.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const auto& rail) { return sum + rail.second; });
}

// "tcp:rail0 6400 (80 %)  tcp:rail1 1600 (20 %)".
std::string shares(const RailBytes& rails) {
    const auto all = static_cast<double>(total(rails));
    std::string text;
    for (const auto& [rail, bytes] : rails) {
        if (!text.empty()) text += "  ";
        text += fmt::format("{} {} ({:.0f} %)", rail, bytes, all > 0 ? 100 * static_cast<double>(bytes) / all : 0.0);
    }
    return text;
}

// "one size, 926 bytes", "3 sizes, 926 to 990 bytes"; of ascending ones.
std::string sizes_text(std::span<const std::uint64_t> sizes) {
    if (sizes.size() == 1) return fmt::format("one size, {} bytes", sizes.front());
    return fmt::format("{} sizes, {} to {} bytes", sizes.size(), sizes.front(), sizes.back());
}

void print(const std::string& text) {
    fmt::print("{}", text);
    std::fflush(stdout);
}

}  // namespace

Result pingpong_result(std::uint64_t bytes, std::span<std::int64_t> round_trips, const RailBytes& rails) {
    const auto spread = spread_of(round_trips);
    constexpr double half_us = 2 * 1000;
    return {bytes,
            "half_round_trip_us",
            {{"min", "min us", spread.min / half_us},
             {"mean", "mean us", spread.mean / half_us},
             {"median", "median us", spread.median / half_us},
             {"p99", "p99 us", spread.p99 / half_us}},
            rails};
}

Result bandwidth_result(std::uint64_t bytes, const Outcome& outcome) {
    const auto seconds = static_cast<double>(std::max<base::Nanoseconds>(outcome.elapsed, 1)) / 1e9;
    const auto messages = static_cast<double>(outcome.messages);
    return {bytes,
            "",
            {{"MB_per_s", "MB/s", messages * static_cast<double>(bytes) / 1e6 / seconds},
             {"messages_per_s", "messages/s", messages / seconds}},
            outcome.rails};
}

Result access_result(std::uint64_t bytes, const Spread& alone, const Outcome& outcome) {
    auto result = bandwidth_result(bytes, outcome);
    result.figures.back().name = "operations_per_s";
    result.figures.back().title = "operations/s";
    constexpr double us = 1000;
    result.figures.insert(result.figures.begin(), {{"min_us", "min us", alone.min / us},
                                                   {"mean_us", "mean us", alone.mean / us},
                                                   {"median_us", "median us", alone.median / us},
                                                   {"p99_us", "p99 us", alone.p99 / us}});
    return result;
}

std::string unmeasured_text(const LinkAssessment& link) {
    const auto line = [&](const auto& sizes, std::string_view why) {
        if (sizes.empty()) return std::string();
        return fmt::format("# {}: not measured: {}: {}; what is said of those is a guess\n", link.link.rail,
                           sizes_text(sizes), why);
    };
    return line(link.missing, "no answer came, or there was no room for them beside the application") +
           line(link.interrupted, "answers came, but a process was away each time, for most of it");
}

nlohmann::ordered_json to_json(const Result& result) {
    nlohmann::ordered_json object{{"bytes", result.bytes}};
    auto& figures = result.group.empty() ? object : object[std::string(result.group)];
    for (const auto& figure : result.figures) figures[std::string(figure.name)] = rounded(figure.value);
    auto& rails = object["rails"] = nlohmann::ordered_json::object();
    for (const auto& [rail, bytes] : result.rails) rails[rail] = bytes;
    return object;
}

std::string table_header(const Result& result) {
    auto text = fmt::format("{:<12}", "# bytes");
    for (const auto& figure : result.figures) text += fmt::format(" {:>16}", figure.title);
    return text + "  payload bytes by rail\n";
}

std::string table_row(const Result& result) {
    auto text = fmt::format("{:<12}", result.bytes);
    for (const auto& figure : result.figures) text += fmt::format(" {:>16.2f}", figure.value);
    return text + "  " + shares(result.rails) + "\n";
}

std::string csv_header(const Result& result) {
    std::string text = "bytes";
    for (const auto& figure : result.figures) {
        text += fmt::format(",{}{}{}", result.group, result.group.empty() ? "" : "_", figure.name);
    }
    return text + ",rails\n";
}

std::string csv_row(const Result& result) {
    auto text = fmt::format("{}", result.bytes);
    for (const auto& figure : result.figures) text += fmt::format(",{:.3f}", figure.value);
    std::string rails;
    for (const auto& [rail, bytes] : result.rails)
        rails += fmt::format("{}{}={}", rails.empty() ? "" : " ", rail, bytes);
    return text + "," + rails + "\n";
}

Printer::Printer(Format format, std::string_view tool, std::string title)
    : format_(format), title_(std::move(title)), document_{{"tool", tool}} {
    document_["results"] = nlohmann::ordered_json::array();
}

void Printer::add(const Result& result) {
    if (format_ == Format::json) {
        document_["results"].push_back(to_json(result));
        return;
    }
    const bool table = format_ == Format::table;
    if (!headed_) print(table ? title_ + table_header(result) : csv_header(result));
    headed_ = true;
    print(table ? table_row(result) : csv_row(result));
}

void Printer::end() {
    if (format_ == Format::json) print(document_.dump() + "\n");
}

}  // namespace railmux::tools

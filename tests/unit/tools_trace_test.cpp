// Traces as tables, objects and timelines.
#include <catch2/catch.hpp>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/timeline.hpp"
#include "tools/trace_tables.hpp"
#include "trace_made.hpp"

using namespace railmux;
using namespace railmux::tools;  // NOLINT: the functions under test
using trace::test::Made;

namespace {

/// Two frames over rail 0 that one acknowledgement tells of, one over rail 1, and one that nobody acknowledged.
trace::Trace small_trace(const trace::Header& header = trace::test::two_rails()) {
    return Made(header)
        .add_links()
        .add_sent({.seq = 1, .at = 0})
        .add_sent({.seq = 2, .at = 1000})
        .add_acknowledged(1, 30'000)
        .add_acknowledged(2, 30'000)
        .add_sent({.seq = 3, .at = 30'000, .choice = 1})
        .add_acknowledged(3, 125'000)
        .add_sent({.seq = 4, .at = 200'000})
        .parsed();
}

nlohmann::json timeline(std::span<const trace::Trace> traces) {
    std::ostringstream text;
    write_timeline(text, traces);
    return nlohmann::json::parse(text.str());
}

}  // namespace

TEST_CASE("timeline: a row for each rail, whose bars do not overlap", "[tools]") {
    const auto read = small_trace();
    const auto events = timeline({&read, 1})["traceEvents"];
    std::map<int, std::string> rows;
    std::map<int, double> free;
    std::map<std::string, int> bars;
    for (const auto& event : events) {
        const std::string shape = event["ph"];
        if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
        if (event["name"] == "process_name") CHECK(event["args"]["name"] == "rank 3 (host-a)");
        if (shape == "i") CHECK(event["args"]["real_us"].is_null());
        if (shape != "X") continue;
        ++bars[event["args"]["real_is"]];
        CHECK(event["name"] == "eager 1000 B");
        CHECK(event["args"]["peer"] == "rank 1 (host-b)");
        const double begin = event["ts"];
        CHECK(begin >= free[event["tid"]]);
        free[event["tid"]] = begin + event["dur"].get<double>();
    }
    CHECK(rows == std::map<int, std::string>{{0, "tcp:eth0"}, {1, "tcp:eth1"}});
    CHECK(bars == std::map<std::string, int>{{"at most", 1}, {"timed", 2}});
    CHECK(free[0] == Approx(25));
    CHECK(free[1] == Approx(120));
}

TEST_CASE("timeline: files of several hosts are laid side by side by their wall clocks", "[tools]") {
    auto later = trace::test::two_rails();
    later.wall += 1'000'000;
    const std::array both{small_trace(), small_trace(later)};
    std::map<int, double> first;
    const auto document = timeline(both);
    for (const auto& event : document["traceEvents"]) {
        if (event["ph"] == "X") first.try_emplace(event["pid"], event["ts"].get<double>());
    }
    CHECK(first[1] - first[0] == Approx(1000));
}

TEST_CASE("timeline: nothing recorded is a timeline, too", "[tools]") {
    const auto empty = Made().parsed();
    CHECK(timeline({&empty, 1})["traceEvents"].size() == 3);  // names only
    CHECK(timeline({})["traceEvents"].empty());
}

TEST_CASE("trace: the table and the object agree", "[tools]") {
    const auto read = small_trace();
    const auto rails = trace::analyse({&read, 1});
    const auto table = trace_table({&read, 1}, rails);
    CHECK_THAT(table, Catch::Matchers::StartsWith("# rank 3 (host-a), policy vft, 4 frames\nrail  "));
    CHECK_THAT(table, Catch::Matchers::Contains("\ntcp:eth0  3       3000   75.0"));
    const auto object = nlohmann::json::parse(one_line(trace_json({&read, 1}, rails)));
    CHECK(object["tool"] == "trace");
    CHECK(object["traces"][0]["frames"] == 4);
    CHECK(object["results"].size() == 3);
    CHECK(object["results"][0]["bytes"] == 3000);
    CHECK(object["results"][2]["rail"] == "all");

    const auto none = Made().parsed();
    CHECK_THAT(trace_table({&none, 1}, trace::analyse({&none, 1})), Catch::Matchers::Contains("\nall   0       0"));
}

TEST_CASE("replay: the table and the object agree", "[tools]") {
    const auto read = small_trace();
    const std::array results{trace::Replay(read).run("vft"), trace::Replay(read).run("fixed")};
    const auto table = replay_table(read, results);
    CHECK_THAT(table, Catch::Matchers::StartsWith("# rank 3 (host-a), recorded with vft: 4 messages, 4000 bytes\n"));
    CHECK_THAT(table, Catch::Matchers::Contains("\nfixed "));
    const auto object = nlohmann::json::parse(one_line(replay_json(read, results)));
    CHECK(object["tool"] == "replay");
    CHECK(object["results"][1]["policy"] == "fixed");
    CHECK(object["results"][1]["messages"] == 4);
}

TEST_CASE("trace: names that are no UTF-8 stay printable", "[tools]") {
    auto header = trace::test::two_rails();
    header.rank = trace::no_rank;
    header.host = "\xff";
    const auto read = small_trace(header);
    CHECK(process_of(read.header) == "\xff:42");
    const auto object = nlohmann::json::parse(one_line(trace_json({&read, 1}, trace::analyse({&read, 1}))));
    CHECK(object["traces"][0]["process"] == "\xef\xbf\xbd:42");
    CHECK(timeline({&read, 1})["traceEvents"].size() == 7);
}

#include "tools/results.hpp"

#include <catch2/catch.hpp>

#include <vector>

#include "tools/inventory.hpp"

using namespace railmux::tools;  // NOLINT: the functions under test

namespace {

Result ping_result() {
    std::vector<std::int64_t> round_trips{8000, 6000, 7000, 400000};
    return pingpong_result(8, round_trips, {{"tcp:rail0", 48}, {"tcp:rail1", 16}});
}

Result flood_result() {
    Outcome outcome{.elapsed = 500'000'000, .messages = 1000, .rails = {{"tcp:rail0", 65'536'000}}};
    return bandwidth_result(65536, outcome);
}

}  // namespace

TEST_CASE("models of earlier runs as text and JSON", "[tools]") {
    using namespace railmux;  // NOLINT: the types they show
    model::Store::Content content;
    LogGP m{.half_round_trip = Nanos(12'345)};
    m.ranges[0].G = PerByte::at(1e9);
    constexpr auto hour = 3600 * base::second;
    content.models.push_back({{{1, 2}, "0.1.0", "b tcp:eth1 to c", m}, 0});
    content.models.push_back({{{3, 4}, "0.1.0", "a tcp:eth1 to c", m}, 97 * hour});
    content.models.push_back({{{3, 4}, "0.2.0", "a tcp:eth1 to c", m}, 99 * hour});
    content.models.push_back({{{3, 6}, "0.2.0", "a tcp:eth1 to c", m}, 98 * hour});
    CHECK(models_table(content, 100 * hour, true) ==
          "link             up to bytes  half rt us  Mbit/s  confidence  version  age\n"
          "a tcp:eth1 to c  any          12.35       1000.0  0.00        0.2.0    60 min\n"
          "a tcp:eth1 to c  any          12.35       1000.0  0.00        0.2.0    2 h\n"
          "a tcp:eth1 to c  any          12.35       1000.0  0.00        0.1.0    3 h\n"
          "b tcp:eth1 to c  any          12.35       1000.0  0.00        0.1.0    4 days\n");
    CHECK(models_table(content, 100 * hour, false) ==
          "link             up to bytes  half rt us  Mbit/s  confidence  version  age\n"
          "a tcp:eth1 to c  any          12.35       1000.0  0.00        0.2.0    60 min\n"
          "a tcp:eth1 to c  any          12.35       1000.0  0.00        0.2.0    2 h\n"
          "b tcp:eth1 to c  any          12.35       1000.0  0.00        0.1.0    4 days\n"
          "1 more of the same links, older, by other versions of railmux: railmux models --all\n");
    content.refused = 2;
    CHECK_THAT(models_table(content, 0, false), Catch::Contains("2 damaged or foreign files"));
    const auto json = models_json(content, 100 * hour);
    CHECK(json["refused"] == 2);
    REQUIRE(json["models"].size() == 4);
    CHECK(json["models"][3]["local"] == "0000000000000001");
    CHECK(json["models"][0]["age_s"] == 3600);
    CHECK(json["models"][0]["model"]["half_round_trip_ns"] == 12345);
}

TEST_CASE("a probe tells sizes that got no answer from those that were answered while a process was away", "[tools]") {
    railmux::LinkAssessment link;
    link.link.rail = "shm:node";
    CHECK(unmeasured_text(link).empty());
    link.interrupted = {926, 958, 990};
    CHECK(unmeasured_text(link) ==
          "# shm:node: not measured: 3 sizes, 926 to 990 bytes: answers came, but a process was away each time, for "
          "most of "
          "it; what is said of those is a guess\n");
    link.interrupted.clear();
    link.missing = {65536};
    CHECK(unmeasured_text(link) ==
          "# shm:node: not measured: one size, 65536 bytes: no answer came, or there was no room for them beside the "
          "application; what is said of those is a guess\n");
}

TEST_CASE("spread of samples", "[tools]") {
    std::vector<std::int64_t> samples;
    const auto nothing = spread_of(samples);
    CHECK(nothing.min + nothing.median + nothing.p99 == 0);
    samples = {5};
    CHECK(spread_of(samples).p99 == 5);
    for (std::int64_t i = 100; i >= 1; --i) samples.push_back(i);
    samples.erase(samples.begin());
    const auto spread = spread_of(samples);
    CHECK(spread.min == 1);
    CHECK(spread.mean == 50.5);
    CHECK(spread.median == 50.5);
    CHECK(spread.p99 == 99);
    samples.push_back(1000);
    CHECK(spread_of(samples).median == 51);
    CHECK(spread_of(samples).p99 == 100);
}

TEST_CASE("results in JSON are as scripts expect them", "[tools]") {
    CHECK(to_json(ping_result()).dump() ==
          R"({"bytes":8,"half_round_trip_us":{"min":3.0,"mean":52.625,"median":3.75,"p99":200.0},)"
          R"("rails":{"tcp:rail0":48,"tcp:rail1":16}})");
    CHECK(to_json(flood_result()).dump() ==
          R"({"bytes":65536,"MB_per_s":131.072,"messages_per_s":2000.0,"rails":{"tcp:rail0":65536000}})");
    CHECK(to_json(bandwidth_result(0, {})).dump() == R"({"bytes":0,"MB_per_s":0.0,"messages_per_s":0.0,"rails":{}})");
}

TEST_CASE("results as table and CSV", "[tools]") {
    CHECK(table_header(ping_result()) ==
          "# bytes                min us          mean us        median us           p99 us  payload bytes by rail\n");
    CHECK(table_row(ping_result()) ==
          "8                        3.00            52.62             3.75           200.00  tcp:rail0 48 (75 %)  "
          "tcp:rail1 16 (25 "
          "%)\n");
    CHECK(csv_header(ping_result()) ==
          "bytes,half_round_trip_us_min,half_round_trip_us_mean,half_round_trip_us_median,half_round_trip_us_p99,"
          "rails\n");
    CHECK(csv_row(ping_result()) == "8,3.000,52.625,3.750,200.000,tcp:rail0=48 tcp:rail1=16\n");
    CHECK(csv_header(flood_result()) == "bytes,MB_per_s,messages_per_s,rails\n");
    CHECK(csv_row(flood_result()) == "65536,131.072,2000.000,tcp:rail0=65536000\n");
}

TEST_CASE("rails and parameters as text", "[tools]") {
    CHECK(aligned(std::vector<std::vector<std::string>>{{"a", "long"}, {"longer", "b"}}) ==
          "a       long\nlonger  b\n");
    CHECK(speed_text(0) == "-");
    CHECK(speed_text(100'000'000) == "100 Mbit/s");
    CHECK(speed_text(2'500'000'000) == "2.5 Gbit/s");
    CHECK(speed_text(100'000'000'000) == "100 Gbit/s");

    railmux::RailInfo good{.name = "tcp:eth0",
                           .transport = "tcp",
                           .device = "eth0",
                           .usable = true,
                           .reason = {},
                           .cure = {},
                           .speed_bps = 1'000'000'000,
                           .numa_node = 0,
                           .kind = "ethernet",
                           .addresses = {"10.0.0.1", "fd00::1"}};
    railmux::RailInfo off{.name = "tcp:docker0",
                          .transport = "tcp",
                          .device = "docker0",
                          .usable = false,
                          .reason = "a bridge",
                          .cure = "name it in --rails",
                          .kind = "bridge"};
    const std::vector<railmux::RailInfo> rails{good, off};
    const EagerMaxima eager{{"tcp:eth0", {4096, 16384}}};
    CHECK(rails_table(rails, eager, false) ==
          "rail         state   kind      speed     eager B     numa  addresses         reason\n"
          "tcp:eth0     usable  ethernet  1 Gbit/s  4096-16384  0     10.0.0.1 fd00::1\n"
          "tcp:docker0  off     bridge    -         -           -     -                 a bridge\n"
          "\ncure for tcp:docker0: name it in --rails\n");
    const railmux::RailInfo memory{.name = "shm:node", .transport = "shm", .usable = true, .by_processors = true};
    const railmux::RailInfo loopback{.name = "tcp:lo", .transport = "tcp", .usable = true, .by_processors = true};
    CHECK_THAT(rails_table(std::vector{good, memory, loopback}, {}, false),
               Catch::Contains("\nshm:node, tcp:lo: the processors of this host move the bytes of each; "));
    CHECK_THAT(rails_table(std::vector{good, memory}, {}, false), !Catch::Contains("processors"));
    auto many = rails;
    for (const char* name : {"ofi:a", "ofi:b", "ofi:c"}) {
        many.push_back({.name = name, .transport = "ofi", .reason = "not wanted", .cure = "want it"});
    }
    CHECK(rails_table(many, eager, false) ==
          "rail          state   kind      speed     eager B     numa  addresses         reason\n"
          "tcp:eth0      usable  ethernet  1 Gbit/s  4096-16384  0     10.0.0.1 fd00::1\n"
          "tcp:docker0   off     bridge    -         -           -     -                 a bridge\n"
          "ofi: 3 rails  off     -         -         -           -     -                 not wanted\n"
          "\ncure for tcp:docker0: name it in --rails\n"
          "`railmux info --all` lists every rail that is off, and what would help\n");
    CHECK_THAT(rails_table(many, eager, true),
               Catch::Contains("\nofi:b ") && Catch::Contains("cure for ofi:c: want it"));
    CHECK(rails_json(rails, eager)["rails"][1]["usable"] == false);
    CHECK(rails_json(rails, eager)["rails"][0]["eager_max"]["least"] == 4096);
    CHECK(!rails_json(rails, eager)["rails"][1].contains("eager_max"));
    CHECK(rails_json(rails, eager)["rails"][0]["addresses"].size() == 2);

    const auto parameters = railmux::Config().parameters();
    CHECK(parameters_json(parameters)["parameters"].size() == parameters.size());
    std::istringstream table(parameters_table(parameters));
    std::size_t named = 0, widest = 0;
    for (std::string line; std::getline(table, line);) {
        widest = std::max(widest, line.size());
        named += line.starts_with(' ') || line.starts_with('#') || line.starts_with("parameter ") ? 0 : 1;
    }
    CHECK(named == parameters.size());
    CHECK(widest <= 140);
}

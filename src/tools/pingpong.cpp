// `railmux pingpong`: half round trip times, of one message or of bursts.
#include <memory>

#include "tools/benchmark.hpp"
#include "tools/commands.hpp"

namespace railmux::tools {
namespace {

constexpr auto pingpong_help =
    R"(Half round trip times: min, mean, median and 99th percentile, in microseconds. Without --pause one message follows the
other: large ones then show what rails sustain, not what a message takes alone.

  host-a$ railmux pingpong --listen 5000
  host-b$ railmux pingpong --connect host-a:5000 --sizes 8,64,4096
  host-b$ railmux pingpong --connect host-a:5000 --sizes 1-1M --iterations 1000 --json
  host-b$ railmux pingpong --connect host-a:5000 --sizes 1K --burst 32                32 messages there, 32 back
        $ railmux run -n 2 railmux pingpong --rails tcp:eth1

Both sides check what they receive: of every message the length and a number in its first and last 8 bytes, of the last
message of each size and of the whole warm-up every byte. Exit code 0 says that all of it arrived and was right.
The bytes by rail are the payload that the connecting side sent and received over it.)";

Result measure_pingpong(const Benchmark& benchmark, const BenchmarkOptions& options, std::uint64_t bytes,
                        Driver& driver) {
    const auto outcome = driver.measure(order_for(benchmark, options, bytes), options.extent);
    return pingpong_result(bytes, driver.samples(), outcome.rails);
}

}  // namespace

void add_pingpong(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("pingpong", "measure latency between two processes");
    command->footer(pingpong_help);
    const auto options = std::make_shared<BenchmarkOptions>();  // lives as long as the callback below
    options->sizes = "1-1M";
    options->window = 1;
    add_benchmark_options(*command, *options);
    command->add_option("--burst", options->window, "messages sent at once each way; --iterations counts messages")
        ->type_name("N")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command->add_option("--pause", options->extent.pause, "microseconds of rest after each round trip")
        ->type_name("US")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1'000'000}))
        ->capture_default_str();
    command->callback([options, &exit_code] {
        exit_code = run_benchmark({"pingpong", Action::pingpong, measure_pingpong}, *options);
    });
}

}  // namespace railmux::tools

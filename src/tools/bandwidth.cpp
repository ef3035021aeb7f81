// `railmux bandwidth`: bytes and messages per second.
#include <memory>

#include "tools/benchmark.hpp"
#include "tools/commands.hpp"

namespace railmux::tools {
namespace {

constexpr auto bandwidth_help =
    R"(MB/s (10^6 bytes) and messages per second, from the first send until the receiver has confirmed the last
arrival.

  host-a$ railmux bandwidth --listen 5000
  host-b$ railmux bandwidth --connect host-a:5000 --sizes 64K-4M
  host-b$ railmux bandwidth --connect host-a:5000 --sizes 8 --window 64 --json      message rate
  host-b$ railmux bandwidth --connect host-a:5000 --bidirectional --policy round_robin
        $ railmux run -n 2 railmux bandwidth

The receiver checks of every message the length and a number in its first and last 8 bytes, and every byte of the last
message in each buffer and of the whole warm-up. Exit code 0 says that all of it arrived and was right. With fewer
--buffers than messages under way, as in the OSU benchmarks, messages share memory: faster where the cache is the limit,
but then they all carry the same number.
The bytes by rail are the payload that the connecting side sent over it, with --bidirectional sent and received.)";

Result measure_stream(const Benchmark& benchmark, const BenchmarkOptions& options, std::uint64_t bytes,
                      Driver& driver) {
    return bandwidth_result(bytes, driver.measure(order_for(benchmark, options, bytes), options.extent));
}

}  // namespace

void add_bandwidth(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("bandwidth", "measure bandwidth and message rate between two processes");
    command->footer(bandwidth_help);
    const auto options = std::make_shared<BenchmarkOptions>();  // lives as long as the callback below
    options->sizes = "1-4M";
    add_benchmark_options(*command, *options);
    command->add_option("--window", options->window, "messages under way at a time")
        ->type_name("W")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command->add_option("--buffers", options->buffers, "distinct buffers on each side; default: as many as the window")
        ->type_name("N")
        ->check(CLI::Range(1, 65536));
    command->add_flag_callback(
        "--bidirectional", [options] { options->direction = Direction::both; }, "both sides send; the sum is shown");
    command->callback([options, &exit_code] {
        exit_code = run_benchmark({"bandwidth", Action::stream, measure_stream}, *options);
    });
}

}  // namespace railmux::tools

// `railmux put`, `railmux get`, `railmux atomic`: times, bytes and operations per second.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "tools/benchmark.hpp"
#include "tools/commands.hpp"
#include "tools/sizes.hpp"
#include "tools/usage.hpp"

namespace railmux::tools {
namespace {

constexpr auto one_sided_help =
    R"(One side reaches into the memory of the other, which only waits. For each size first one operation at a time: min,
mean, median and 99th percentile of its time in microseconds, until it is known to be done over there. Then with --window under
way: MB/s (10^6 bytes) and operations per second.

  host-a$ railmux put --listen 5000
  host-b$ railmux put --connect host-a:5000 --sizes 8,64K,4M
  host-b$ railmux get --connect host-a:5000 --window 16 --json
  host-b$ railmux atomic --connect host-a:5000                fetch_add of 4 and of 8 bytes
        $ railmux run -n 2 railmux get --rails tcp:eth1

A listener of any measuring command serves all of them (--keep: one after the other). What is put carries a number in its first
and last 8 bytes and is checked over there, as is every byte of the last put into each place; what is got is checked here; each
atomic must find what the one before left. Exit code 0 says that all of it was right. The bytes by rail are the payload of the
second measurement.)";

Result measure_access(const Benchmark& benchmark, const BenchmarkOptions& options, std::uint64_t bytes,
                      Driver& driver) {
    auto order = order_for(benchmark, options, bytes);
    const auto window = order.window;
    order.window = order.buffers = 1;
    static_cast<void>(driver.measure(order, options.extent));
    const auto alone = spread_of(driver.samples());
    order.window = window;
    order.buffers = window;
    return access_result(bytes, alone, driver.measure(order, options.extent));
}

void add(CLI::App& railmux, int& exit_code, const Benchmark& benchmark, const std::string& what,
         std::string_view sizes) {
    auto* command = railmux.add_subcommand(std::string(benchmark.name), what);
    command->footer(one_sided_help);
    const auto options = std::make_shared<BenchmarkOptions>();  // lives as long as the callback below
    options->sizes = sizes;
    add_benchmark_options(*command, *options);
    command->add_option("--window", options->window, "operations under way at a time")
        ->type_name("W")
        ->check(CLI::Range(1, 65536))
        ->capture_default_str();
    command->callback([options, benchmark, &exit_code] {
        const auto fits = [](std::uint64_t bytes) { return bytes == 4 || bytes == 8; };
        if (benchmark.action == Action::atomic && !std::ranges::all_of(parse_sizes(options->sizes), fits)) {
            throw UsageError(fmt::format("--sizes {}: atomics have 4 or 8 bytes", options->sizes),
                             "give --sizes 4, 8, or both as 4,8");
        }
        exit_code = run_benchmark(benchmark, *options);
    });
}

}  // namespace

void add_put(CLI::App& railmux, int& exit_code) {
    add(railmux, exit_code, {"put", Action::put, measure_access}, "measure writing into another process's memory",
        "1-4M");
}

void add_get(CLI::App& railmux, int& exit_code) {
    add(railmux, exit_code, {"get", Action::get, measure_access}, "measure reading another process's memory", "1-4M");
}

void add_atomic(CLI::App& railmux, int& exit_code) {
    add(railmux, exit_code, {"atomic", Action::atomic, measure_access}, "measure atomics in another process's memory",
        "4,8");
}

}  // namespace railmux::tools

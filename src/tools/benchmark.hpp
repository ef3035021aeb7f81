// What `railmux pingpong`, `bandwidth`, `put`, `get` and `atomic` have in common: options, the other side, the sizes one by
// one.
//
// Threads: one thread.
// Lifetime: options are values; CLI11 writes into them while it parses, so they must outlive the parsing.
#pragma once

#include <CLI/CLI.hpp>

#include <railmux/config.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/driver.hpp"
#include "tools/results.hpp"

namespace railmux::tools {

/// Options that shape the Config of every command that looks at rails.
struct ConfigOptions {
    std::string rails;
    std::string transports;
    std::string policy;
    std::vector<std::string> settings;  // NAME=VALUE
};

void add_config_options(CLI::App& command, ConfigOptions& options);

/// Config::load() with the options on top. Throws UsageError naming the malformed option.
[[nodiscard]] Config make_config(const ConfigOptions& options);

/// Throws Error(no_rails) when there is nothing but the rail to ourselves: then both sides would wait in vain.
void need_rails(const Context& context);

/// Where the two sides find each other.
struct SideOptions {
    ConfigOptions config;
    std::string listen;
    std::string connect;
    bool keep = false;
    std::uint64_t partner = 1;  // under `railmux run`: the rank that serves rank 0
};

void add_side_options(CLI::App& command, SideOptions& options);

/// Plays this process's role: serves (listener, or rank `partner` of a job), calls `drive` with the driver of the serving side
/// (connected, or rank 0), or nothing (other ranks). The command's exit code.
using Drive = std::function<void(Context& context, Peer server, Driver& driver, const Config& config)>;
[[nodiscard]] int run_sides(const SideOptions& options, const Drive& drive);

/// A line on the terminal that the next one replaces. Nothing when standard error goes elsewhere.
void show_progress(std::string_view text);

struct BenchmarkOptions {
    SideOptions sides;
    std::string sizes;
    Extent extent;
    bool find_sharing = false;
    std::uint64_t window = 64;
    std::uint64_t buffers = 0;  // 0: as many as the window
    Direction direction = Direction::to_server;
    bool json = false;
    bool csv = false;
};

/// The options that all benchmarks know.
void add_benchmark_options(CLI::App& command, BenchmarkOptions& options);

/// One benchmark: its name, the action it orders, and how it measures a size.
struct Benchmark {
    std::string_view name;
    Action action;
    Result (*measure)(const Benchmark&, const BenchmarkOptions&, std::uint64_t bytes, Driver&);
};

/// The order for messages of `bytes`; says when the window must be smaller than asked for.
[[nodiscard]] Order order_for(const Benchmark& benchmark, const BenchmarkOptions& options, std::uint64_t bytes);

[[nodiscard]] int run_benchmark(const Benchmark& benchmark, const BenchmarkOptions& options);

}  // namespace railmux::tools

#include "tools/benchmark.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

#include <railmux/context.hpp>
#include <railmux/error.hpp>

#include "tools/sizes.hpp"
#include "tools/usage.hpp"

namespace railmux::tools {
namespace {

enum class Role { serve, drive, idle };

Role role_of(const SideOptions& options, const Config& config) {
    if (!options.listen.empty()) return Role::serve;
    if (!options.connect.empty()) return Role::drive;
    if (config.text("job.id").empty()) {
        throw UsageError("neither --listen nor --connect is given, and `railmux run` has not started this process",
                         "start one side with --listen PORT and the other with --connect HOST:PORT, or both with "
                         "`railmux run -n 2`");
    }
    if (config.number("job.size") < 2) {
        throw UsageError("the job has one process, and two are needed", "start it with `railmux run -n 2`");
    }
    if (options.partner == 0 || options.partner >= config.number("job.size")) {
        throw UsageError(fmt::format("--peer {}: the job has ranks 1 to {} beside rank 0", options.partner,
                                     config.number("job.size") - 1),
                         "name one of them");
    }
    const auto rank = config.number("job.rank");
    return rank == 0 ? Role::drive : rank == options.partner ? Role::serve : Role::idle;
}

void set_option(Config& config, std::string_view option, std::string_view name, std::string_view value) {
    try {
        config.set(name, value);
    } catch (const Error& error) {
        throw UsageError(fmt::format("{}: {}", option, error.what()), error.cure());
    }
}

Peer accept_client(Context& context) {
    for (;;) {
        if (const auto peer = context.accept(std::chrono::hours(1))) return *peer;
    }
}

// One client after the other; with --keep a client that fails does not end the listener.
int serve_clients(Context& context, Workspace& workspace, const SideOptions& options) {
    const auto port = context.listen(options.listen);
    fmt::print(stderr, "railmux: listening on port {}\n", port);
    for (;;) {
        try {
            const auto client = accept_client(context);
            const bool right = serve(context, client, workspace);
            fmt::print(stderr, "railmux: {} is done, {}\n", context.name(client),
                       right ? "all data arrived" : "but wrong data arrived");
            if (!options.keep) return right ? 0 : 1;
        } catch (const Error& error) {
            if (!options.keep) throw;
            fmt::print(stderr, "railmux: {}\n", error.what());
        }
    }
}

std::string title_of(const Benchmark& benchmark, const BenchmarkOptions& options, const Context& context, Peer peer,
                     const Config& config) {
    auto text =
        fmt::format("# railmux {} with {}, policy {}", benchmark.name, context.name(peer), config.text("policy"));
    if (benchmark.action == Action::stream) {
        text += fmt::format(", window {}, {}", options.window,
                            options.direction == Direction::both ? "both ways, their sum" : "one way");
    } else if (one_sided(benchmark.action)) {
        text += fmt::format(", window {}", options.window);
    } else if (options.window > 1) {
        text += fmt::format(", bursts of {}", options.window);
    }
    return text + "\n";
}

void find_sharing(Context& context, Peer server) {
    const auto sharing = context.assess_sharing(
        server, "all", {[](std::string_view rails, double) { show_progress(fmt::format("flooding {} ...", rails)); }});
    show_progress("");
    for (const auto& pair : sharing.pairs) fmt::print(stderr, "railmux: {}\n", pair.text);
}

void measure_sizes(const Benchmark& benchmark, const BenchmarkOptions& options, Context& context, Peer server,
                   Driver& driver, Printer& printer) {
    const auto sizes = parse_sizes(options.sizes);
    driver.settle();
    if (options.find_sharing) find_sharing(context, server);
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        show_progress(fmt::format("{} of {}: {} bytes ...", i + 1, sizes.size(), sizes[i]));
        const auto result = benchmark.measure(benchmark, options, sizes[i], driver);
        show_progress("");
        printer.add(result);
    }
}

}  // namespace

void need_rails(const Context& context) {
    std::string reasons;
    for (const auto& rail : context.rails()) {
        if (rail.usable && rail.transport != "self") return;
        if (!rail.usable)
            reasons += fmt::format("\n  {}: {}{}{}", rail.name, rail.reason, rail.cure.empty() ? "" : "; ", rail.cure);
    }
    throw Error(ErrorCode::no_rails, "no rail leads to another process" + reasons,
                "see `railmux info`, and select rails with --rails");
}

Order order_for(const Benchmark& benchmark, const BenchmarkOptions& options, std::uint64_t bytes) {
    const auto wanted = options.buffers == 0 ? options.window : std::min(options.buffers, options.window);
    const auto buffers = affordable_window(bytes, wanted);
    const auto window = options.buffers == 0 ? buffers : options.window;
    if (window < options.window) {
        fmt::print(stderr, "railmux: {} reduced from {} to {} at {} bytes, to bound the memory for buffers\n",
                   benchmark.action == Action::pingpong ? "burst" : "window", options.window, window, bytes);
    }
    return {.action = benchmark.action,
            .direction = options.direction,
            .bytes = bytes,
            .window = window,
            .buffers = buffers};
}

void add_config_options(CLI::App& command, ConfigOptions& options) {
    command.add_option("--rails", options.rails, "rails to use: names, globs, addresses, networks, ^ excludes")
        ->type_name("SELECTOR");
    command
        .add_option("--transport,--transports", options.transports, "kinds of networks to use, e.g. tcp; ^ excludes")
        ->type_name("SELECTOR");
    command.add_option("--policy", options.policy, "how messages are spread over rails")->type_name("NAME");
    command.add_option("--set", options.settings, "any parameter of `railmux info --config`, repeatable")
        ->type_name("NAME=VALUE")
        ->take_all();
}

Config make_config(const ConfigOptions& options) {
    auto config = Config::load();
    for (const auto& setting : options.settings) {
        const auto equals = setting.find('=');
        if (equals == setting.npos) throw UsageError(fmt::format("--set {}: this is not NAME=VALUE", setting));
        const auto name = std::string_view(setting).substr(0, equals);
        if (name == "job.key") {
            throw UsageError(
                "--set job.key: a command line is something that other users can read",
                "set RAILMUX_JOB_KEY, or write it to a file of yours (chmod 600) and name that by RAILMUX_CONFIG");
        }
        set_option(config, "--set", name, std::string_view(setting).substr(equals + 1));
    }
    if (!options.rails.empty()) set_option(config, "--rails", "rails", options.rails);
    if (!options.transports.empty()) set_option(config, "--transport", "transports", options.transports);
    if (!options.policy.empty()) set_option(config, "--policy", "policy", options.policy);
    return config;
}

void show_progress(std::string_view text) {
    if (::isatty(STDERR_FILENO) != 1) return;
    fmt::print(stderr, "\r\x1b[K{}", text);
    std::fflush(stderr);
}

void add_side_options(CLI::App& command, SideOptions& options) {
    auto* listen = command
                       .add_option("--listen", options.listen,
                                   "wait there for the other side; port 0: any. Anybody may connect unless "
                                   "RAILMUX_JOB_KEY is set")
                       ->type_name("[ADDRESS:]PORT");
    auto* connect = command.add_option("--connect", options.connect, "measure with the side that listens there")
                        ->type_name("HOST:PORT")
                        ->excludes(listen);
    command.add_option("--peer", options.partner, "under `railmux run`: the rank that rank 0 measures with")
        ->type_name("RANK")
        ->excludes(listen)
        ->excludes(connect)
        ->capture_default_str();
    command.add_flag("--keep", options.keep, "listen: serve one client after the other, for ever")->needs(listen);
    add_config_options(command, options.config);
}

void add_benchmark_options(CLI::App& command, BenchmarkOptions& options) {
    add_side_options(command, options.sides);
    command.add_option("--sizes,--size", options.sizes, "message sizes, e.g. 8,64,4K or doubling 1-1M")
        ->type_name("LIST")
        ->capture_default_str();
    command.add_option("--iterations", options.extent.iterations, "messages per size; default: half a second's")
        ->type_name("N")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    command.add_option("--warm-up", options.extent.warm_up, "unmeasured messages per size before; default: by size")
        ->type_name("N")
        ->each([&options](const std::string&) { options.extent.warm_up_given = true; });
    command.add_flag("--find-sharing", options.find_sharing,
                     "first find which rails share a bottleneck; they count as one then");
    auto* json = command.add_flag("--json", options.json, "one JSON object on standard output");
    command.add_flag("--csv", options.csv, "comma-separated values on standard output")->excludes(json);
}

int run_sides(const SideOptions& options, const Drive& drive) {
    const auto config = make_config(options.config);
    const auto role = role_of(options, config);
    Workspace workspace;  // before the context, which may use it to its own end
    Context context(config);
    need_rails(context);
    if (role == Role::idle) return 0;
    if (role == Role::serve) {
        if (!options.listen.empty()) return serve_clients(context, workspace, options);
        return serve(context, context.peer(0), workspace) ? 0 : 1;
    }
    const std::chrono::nanoseconds patience(config.number("connect.patience"));
    const auto server = options.connect.empty() ? context.peer(static_cast<std::uint32_t>(options.partner))
                                                : context.connect(options.connect, patience);
    Driver driver(context, server, workspace);
    drive(context, server, driver, config);
    driver.finish();
    return 0;
}

int run_benchmark(const Benchmark& benchmark, const BenchmarkOptions& options) {
    static_cast<void>(parse_sizes(options.sizes));  // before anything is opened
    const auto format = options.json ? Format::json : options.csv ? Format::csv : Format::table;
    return run_sides(options.sides, [&](Context& context, Peer server, Driver& driver, const Config& config) {
        Printer printer(format, benchmark.name, title_of(benchmark, options, context, server, config));
        measure_sizes(benchmark, options, context, server, driver, printer);
        printer.end();
    });
}

}  // namespace railmux::tools

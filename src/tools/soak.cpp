// `railmux soak`: everything at once, for as long as wanted, and all of it checked.
#include <fmt/format.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>

#include <railmux/context.hpp>
#include <railmux/error.hpp>

#include "base/crypto.hpp"
#include "base/text.hpp"
#include "tools/benchmark.hpp"
#include "tools/commands.hpp"
#include "tools/inventory.hpp"
#include "tools/sizes.hpp"
#include "tools/soak_run.hpp"
#include "tools/usage.hpp"

namespace railmux::tools {
namespace {

constexpr auto soak_help =
    R"(All processes of a job, or two that met, send each other messages of random sizes and tags, put into, get from and add
to each other's memory, all at the same time, and check every byte of it. What must arrive follows from the seed, so that
whatever is lost, doubled, changed, or in the wrong order is found and named.

        $ railmux run -n 4 railmux soak --minutes 10
  host-a$ railmux soak --listen 5000
  host-b$ railmux soak --connect host-a:5000 --minutes 60 --rails 'tcp:eth*'
        $ railmux run -n 4 railmux soak --seed 4711 --operations messages,atomics

Give the same seed to do the same again, as far as the networks behave the same. Exit code 0 says that all was right; 1 that
something was wrong (lines with WRONG), that an operation failed, or that nothing has ended for the time of --watchdog: then
it is said what was under way. Under `railmux run` what stands at rank 0 counts. scripts/soak cuts and slows rails down
meanwhile. SIGINT (Ctrl-C) to one of the processes ends it for all of them, in good order and checked, before its time.)";

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // or a signal's handler could not set it

/// The second one ends the process: the first may find everything hung.
void end_when_interrupted() {
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    ::sigaction(SIGINT, &action, nullptr);
}

struct SoakCommand {
    ConfigOptions config;
    std::string listen;
    std::string connect;
    std::optional<std::uint64_t> partner;
    double minutes = 1;
    std::optional<std::uint64_t> seed;
    std::string max_bytes = "1M";
    std::uint64_t window = 8;
    double watchdog_s = 20;
    std::vector<std::string> operations{"messages", "puts", "notified", "atomics"};
    bool json = false;
};

struct Membership {
    std::uint64_t here = 0;
    std::vector<Peer> others;
};

std::uint64_t kinds_of(const std::vector<std::string>& names) {
    static constexpr std::array<std::pair<std::string_view, SoakKind>, 4> known{{{"messages", SoakKind::message},
                                                                                 {"puts", SoakKind::put},
                                                                                 {"notified", SoakKind::notified},
                                                                                 {"atomics", SoakKind::atomic}}};
    std::uint64_t kinds = 0;
    for (const auto& name : names) {
        const auto found = std::find_if(known.begin(), known.end(), [&](const auto& one) { return one.first == name; });
        if (found == known.end()) {
            throw UsageError(fmt::format("--operations: there is no \"{}\"", name),
                             "name some of messages, puts, notified and atomics");
        }
        kinds |= std::uint64_t{1} << static_cast<unsigned>(found->second);
    }
    return kinds;
}

SoakTerms terms_of(const SoakCommand& command) {
    SoakTerms terms;
    terms.seed = command.seed.value_or(base::random_u64() >> 32);  // short enough to be typed
    terms.max_bytes = parse_size("--max-bytes", command.max_bytes);
    terms.window = command.window;
    terms.kinds = kinds_of(command.operations);
    terms.time = static_cast<base::Nanoseconds>(command.minutes * 60e9);
    if (terms.max_bytes == 0) throw UsageError("--max-bytes 0: there is nothing to soak", "give a size such as 1M");
    return terms;
}

/// Who takes part; empty `others` where this process does not.
Membership join(Context& context, const Config& config, const SoakCommand& command) {
    if (!command.listen.empty()) {
        const auto port = context.listen(command.listen);
        fmt::print(stderr, "railmux: listening on port {}\n", port);
        for (;;) {
            if (const auto peer = context.accept(std::chrono::hours(1))) return {1, {*peer}};
        }
    }
    if (!command.connect.empty()) {
        const std::chrono::nanoseconds patience(config.number("connect.patience"));
        return {0, {context.connect(command.connect, patience)}};
    }
    const auto size = context.size();
    if (command.partner) {
        const auto partner = static_cast<std::uint32_t>(*command.partner);
        if (context.rank() == 0) return {0, {context.peer(partner)}};
        if (context.rank() == partner) return {1, {context.peer(0)}};
        return {};
    }
    Membership all{context.rank(), {}};
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        if (rank != context.rank()) all.others.push_back(context.peer(rank));
    }
    return all;
}

void check_places(const SoakCommand& command, const Config& config) {
    if (!command.listen.empty() || !command.connect.empty()) return;
    const auto size = config.number("job.size");
    if (config.text("job.id").empty() || size < 2) {
        throw UsageError(
            "neither --listen nor --connect is given, and this is no job of several processes",
            "start one side with --listen PORT and the other with --connect HOST:PORT, or all of them with "
            "`railmux run -n 2`");
    }
    if (command.partner && (*command.partner == 0 || *command.partner >= size)) {
        throw UsageError(fmt::format("--peer {}: the job has ranks 1 to {} beside rank 0", *command.partner, size - 1),
                         "name one of them");
    }
}

struct Outcome {
    SoakTally tally;
    SoakTerms terms;
    std::size_t processes = 0;
    base::Nanoseconds took = 0;
    std::vector<RailTraffic> traffic;
};

std::vector<std::vector<std::string>> traffic_rows(const std::vector<RailTraffic>& traffic, const Context& context) {
    std::vector<std::vector<std::string>> rows{
        {"rail", "with", "sent B", "received B", "resent", "duplicate", "lost links"}};
    for (const auto& rail : traffic) {
        if (rail.sent_frames + rail.received_frames + rail.links_lost == 0) continue;
        rows.push_back({rail.rail, context.name(rail.peer), std::to_string(rail.sent_bytes),
                        std::to_string(rail.received_bytes), std::to_string(rail.resent_frames),
                        std::to_string(rail.duplicate_frames), std::to_string(rail.links_lost)});
    }
    return rows;
}

void print_table(const Outcome& outcome, const Context& context) {
    const auto seconds = static_cast<double>(std::max<base::Nanoseconds>(outcome.took, 1)) / 1e9;
    std::vector<std::vector<std::string>> rows{{"operation", "checked", "bytes", "per second", "MB/s"}};
    for (std::size_t kind = 0; kind < soak_kinds; ++kind) {
        const auto& count = outcome.tally.done[kind];
        rows.push_back({std::string(to_string(static_cast<SoakKind>(kind))), std::to_string(count.operations),
                        std::to_string(count.bytes),
                        fmt::format("{:.0f}", static_cast<double>(count.operations) / seconds),
                        fmt::format("{:.1f}", static_cast<double>(count.bytes) / 1e6 / seconds)});
    }
    fmt::print("{}# what this process carried\n{}{}", aligned(rows), aligned(traffic_rows(outcome.traffic, context)),
               outcome.tally.faults == 0
                   ? "all right\n"
                   : fmt::format("{} WRONG; first: {}\n", outcome.tally.faults, outcome.tally.problem));
}

void print_json(const Outcome& outcome, const Context& context) {
    auto results = nlohmann::ordered_json::array();
    for (std::size_t kind = 0; kind < soak_kinds; ++kind) {
        const auto& count = outcome.tally.done[kind];
        results.push_back({{"operation", to_string(static_cast<SoakKind>(kind))},
                           {"checked", count.operations},
                           {"bytes", count.bytes}});
    }
    auto rails = nlohmann::ordered_json::array();
    for (const auto& rail : outcome.traffic) {
        rails.push_back({{"rail", rail.rail},
                         {"with", context.name(rail.peer)},
                         {"sent_bytes", rail.sent_bytes},
                         {"received_bytes", rail.received_bytes},
                         {"resent_frames", rail.resent_frames},
                         {"duplicate_frames", rail.duplicate_frames},
                         {"links_lost", rail.links_lost}});
    }
    const nlohmann::ordered_json document{{"tool", "soak"},
                                          {"seed", outcome.terms.seed},
                                          {"processes", outcome.processes},
                                          {"seconds", static_cast<double>(outcome.took) / 1e9},
                                          {"faults", outcome.tally.faults},
                                          {"problem", outcome.tally.problem},
                                          {"results", results},
                                          {"rails", rails}};
    fmt::print("{}\n", document.dump());
}

/// A soak that failed still has operations under way, into memory that is its own: no orderly end is to be had.
[[noreturn]] void fail(const std::string& what, const std::string& cure) {
    fmt::print(stderr, "railmux: {}\n", what);
    if (!cure.empty()) fmt::print(stderr, "cure: {}\n", cure);
    std::fflush(nullptr);
    std::_Exit(1);
}

Outcome soak(const SoakCommand& command, const SoakTerms& terms, Context& context, const Membership& members) {
    Soak::Options options;
    options.stall = std::chrono::milliseconds(static_cast<std::int64_t>(command.watchdog_s * 1000));
    options.begun = [&] {
        if (members.here == 0) fmt::print(stderr, "railmux: all of them have met\n");
    };
    options.progress = [&](base::Nanoseconds elapsed, const SoakTally& tally) {
        show_progress(fmt::format("{} of {} s: {} operations checked, {} wrong", elapsed / base::second,
                                  terms.time / base::second, tally.operations(), tally.faults));
    };
    options.enough = [] { return interrupted.load(); };
    end_when_interrupted();
    try {
        Soak soak(context, members.here, members.others, terms, std::move(options));
        Outcome outcome{.tally = soak.run(), .terms = soak.terms(), .processes = members.others.size() + 1};
        show_progress("");
        outcome.took = soak.took();
        outcome.traffic = context.traffic();
        return outcome;
    } catch (const Error& error) {
        fail(error.what(), error.cure());
    } catch (const std::exception& error) {
        fail(error.what(), {});
    }
}

int run_soak(const SoakCommand& command) {
    const auto config = make_config(command.config);
    const auto terms = terms_of(command);
    check_places(command, config);
    Context context(config);
    need_rails(context);
    const auto members = join(context, config, command);
    if (members.others.empty()) return 0;
    const bool tells = members.here == 0;
    // At once: whoever has to end a soak that hangs wants to know it, too.
    if (tells) {
        fmt::print(stderr, "railmux: soaking {} processes for {:.0f} s, seed {}\n", members.others.size() + 1,
                   static_cast<double>(terms.time) / 1e9, terms.seed);
    }
    const auto outcome = soak(command, terms, context, members);
    if (tells && command.json) print_json(outcome, context);
    if (tells && !command.json) {
        fmt::print("# railmux soak of {} processes for {:.0f} s, seed {}\n", outcome.processes,
                   static_cast<double>(outcome.took) / 1e9, outcome.terms.seed);
        print_table(outcome, context);
    }
    return outcome.tally.faults == 0 ? 0 : 1;
}

void add_options(CLI::App& command, SoakCommand& options) {
    auto* listen = command.add_option("--listen", options.listen, "wait there for the other process; port 0: any")
                       ->type_name("[ADDRESS:]PORT");
    auto* connect = command.add_option("--connect", options.connect, "soak with the process that listens there")
                        ->type_name("HOST:PORT")
                        ->excludes(listen);
    command
        .add_option("--peer", options.partner, "under `railmux run`: only rank 0 and this one; default: all with all")
        ->type_name("RANK")
        ->excludes(listen)
        ->excludes(connect);
    add_config_options(command, options.config);
    command.add_option("--minutes", options.minutes, "how long; 0.25 are 15 seconds")
        ->type_name("M")
        ->check(CLI::Range(0.001, 100000.0))
        ->capture_default_str();
    command.add_option("--seed", options.seed, "what is done; default: another one each time")->type_name("N");
    command.add_option("--max-bytes", options.max_bytes, "largest message or put")
        ->type_name("SIZE")
        ->capture_default_str();
    command.add_option("--window", options.window, "messages under way from one process to another")
        ->type_name("W")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    command.add_option("--operations", options.operations, "some of messages, puts, notified, atomics; default: all")
        ->type_name("LIST")
        ->delimiter(',');
    command.add_option("--watchdog", options.watchdog_s, "nothing has ended for so long: it hangs")
        ->type_name("SECONDS")
        ->check(CLI::Range(0.1, 86400.0))
        ->capture_default_str();
    command.add_flag("--json", options.json, "one JSON object on standard output");
}

}  // namespace

void add_soak(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("soak", "do everything at once for a long time, and check all of it");
    command->footer(soak_help);
    const auto options = std::make_shared<SoakCommand>();  // lives as long as the callback below
    add_options(*command, *options);
    command->callback([options, &exit_code] { exit_code = run_soak(*options); });
}

}  // namespace railmux::tools

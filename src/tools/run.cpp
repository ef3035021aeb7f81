// `railmux run`: the command line of the launcher.
#include <memory>
#include <string>

#include <railmux/config.hpp>

#include "base/values.hpp"
#include "bootstrap/launcher.hpp"
#include "tools/commands.hpp"
#include "tools/usage.hpp"

namespace railmux::tools {
namespace {

constexpr auto run_help = R"(railmux run -n N [OPTIONS] PROGRAM [ARGS...]

Starts N processes of one job, here or on several hosts, and ends them all when one fails; or starts more of a running one.

  railmux run -n 4 ./program args
  railmux run -n 8 --hosts host-a,host-b ./program        in turn, over ssh
  railmux run -n 8 --hosts host-a:2,host-b:6 ./program    ranks 0 and 1 on host-a, 2 to 7 on host-b
  railmux run -n 2 --hosts A,B --launch 'ip netns exec {host}' ./program
  railmux run -n 4 --restart 10 ./program                 whoever fails is started anew, under its rank
  railmux run -n 4 --name demo --keep-going ./program     others may join, and nobody's death ends the rest
  railmux run --join demo -n 2 ./program                  two more, as ranks 4 and 5
  railmux run --join demo --rank 3 ./program              one in place of rank 3, which has ended

Each process finds the others by itself: railmux::Context::rank(), size() and peer(). RAILMUX_* variables are handed
over to all, but for RAILMUX_JOB_*, which each gets anew. Exit code: 0 when all ended well, else that of the first that
did not and was not started anew (128 + signal when it was killed; 124 when --timeout was over). docs/running.md has more
on jobs that others join.)";

struct RunCommand {
    bootstrap::RunOptions options;
    std::uint32_t timeout_s = 0;
    bool plain = false;
};

void add_job_options(CLI::App& command, bootstrap::RunOptions& options) {
    auto* name =
        command.add_option("--name", options.name, "name of the job, by which others may join")->type_name("JOB");
    auto* join = command
                     .add_option("--join", options.join,
                                 "start the processes in a running job: its name, or the path of its file")
                     ->type_name("JOB|FILE")
                     ->excludes(name);
    command.add_option("--rank", options.rank, "the rank of the process that joins: one whose process has ended")
        ->type_name("R")
        ->needs(join);
    command.add_option("--restart", options.restarts, "start a process that fails anew, at most so often")
        ->type_name("TIMES");
    command.add_flag("--keep-going", options.keep_going, "a process that fails does not end the others");
}

void add_options(CLI::App& command, RunCommand& run) {
    auto& options = run.options;
    command.add_option("-n,--processes", options.processes, "number of processes")
        ->type_name("N")
        ->check(CLI::Range(1u, 1u << 24));
    command.add_option("--hosts", options.hosts, "hosts to start them on, in turn; :SLOTS for several in a row")
        ->type_name("HOST[:SLOTS],...")
        ->delimiter(',')
        ->allow_extra_args(false);  // or it would take the program for a host
    command.add_option("--launch", options.launch, "command in front of the program; {host} is replaced")
        ->type_name("COMMAND");
    command.add_option("--env", options.environment, "further environment variables to hand over")
        ->type_name("NAME,...")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_option("--timeout", run.timeout_s, "end the job after this many seconds; 0 (default): never")
        ->type_name("S");
    command.add_flag("--no-prefix", run.plain, "no [rank] in front of output lines");
}

/// The ports that processes listen on: the launcher takes one of them for those of other hosts.
base::PortRange ports() { return base::parse_ports(Config::load().text("tcp.ports")).value_or(base::PortRange{}); }

void check_processes(const CLI::App& command, const bootstrap::RunOptions& options) {
    const bool given = command.count("-n") > 0;
    if (!given && !options.rank) {
        throw UsageError("run: -n is missing: how many processes?", "railmux run -n 2 ./program args");
    }
    if (options.rank && options.processes != 1) {
        throw UsageError("run: --rank is for one process", "leave out -n, or --rank: then all get new ranks");
    }
}

}  // namespace

void add_run(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("run", "start a job of several processes");
    command->footer(run_help);
    command->prefix_command();                        // what follows the program's name is the program's
    const auto run = std::make_shared<RunCommand>();  // lives as long as the callback below
    add_options(*command, *run);
    add_job_options(*command, run->options);
    command->callback([run, command, &exit_code] {
        run->options.command = command->remaining();
        if (run->options.command.empty()) {
            throw UsageError("run: there is no program to start", "railmux run -n 2 ./program args");
        }
        check_processes(*command, run->options);
        run->options.prefix = !run->plain;
        if (!run->options.hosts.empty() || !run->options.name.empty()) run->options.ports = ports();
        run->options.timeout = std::chrono::seconds(run->timeout_s);
        exit_code = bootstrap::run_job(run->options);
    });
}

}  // namespace railmux::tools

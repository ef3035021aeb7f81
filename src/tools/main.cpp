// The `railmux` command. Exit codes: 0 success, 1 failure, 2 a command line that cannot be obeyed.
#include <fcntl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>

#include <railmux/error.hpp>
#include <railmux/version.hpp>

#include "tools/commands.hpp"
#include "tools/usage.hpp"

namespace {

constexpr auto railmux_help = R"(Examples:
  railmux info                                      the rails of this host, and why others are off
  railmux pingpong --listen 5000                    on one host, and on the other:
  railmux pingpong --connect host-a:5000
  railmux run -n 2 railmux bandwidth                both processes here
  railmux run -n 8 --hosts host-a,host-b ./program  eight processes on two hosts

`railmux COMMAND --help` explains each command.)";

int complain(const char* what, const std::string& cure, int exit_code) noexcept {
    std::fprintf(stderr, "railmux: %s\n", what);
    if (!cure.empty()) std::fprintf(stderr, "cure: %s\n", cure.c_str());
    return exit_code;
}

/// A descriptor 0, 1 or 2 that is closed would be given to a socket, which is then taken for the terminal.
void hold_standard_descriptors() noexcept {
    for (int standard = STDIN_FILENO; standard <= STDERR_FILENO; ++standard) {
        if (::fcntl(standard, F_GETFD) < 0)
            static_cast<void>(::open("/dev/null", O_RDWR));  // takes the lowest: this one
    }
}

int run(int argc, char** argv) {
    CLI::App railmux("railmux: messages over every network between two processes at once", "railmux");
    railmux.footer(railmux_help);
    railmux.set_version_flag("--version", "railmux " RAILMUX_VERSION);
    railmux.require_subcommand(1);
    int exit_code = 0;
    railmux::tools::add_info(railmux, exit_code);
    railmux::tools::add_pingpong(railmux, exit_code);
    railmux::tools::add_bandwidth(railmux, exit_code);
    railmux::tools::add_put(railmux, exit_code);
    railmux::tools::add_get(railmux, exit_code);
    railmux::tools::add_atomic(railmux, exit_code);
    railmux::tools::add_probe(railmux, exit_code);
    railmux::tools::add_soak(railmux, exit_code);
    railmux::tools::add_models(railmux, exit_code);
    railmux::tools::add_explain(railmux, exit_code);
    railmux::tools::add_trace(railmux, exit_code);
    railmux::tools::add_replay(railmux, exit_code);
    railmux::tools::add_run(railmux, exit_code);
    try {
        railmux.parse(argc, argv);
        return exit_code;
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return railmux.exit(error);  // --help and --version
        const auto chosen = railmux.get_subcommands();
        if (chosen.empty() && argc > 1) {
            std::string commands;
            for (const auto* command : railmux.get_subcommands({}))
                commands += (commands.empty() ? "" : ", ") + command->get_name();
            return complain(("there is no command or option \"" + std::string(argv[1]) + "\"").c_str(),
                            "one of " + commands, 2);
        }
        const auto command = chosen.empty() ? std::string("railmux") : "railmux " + chosen.front()->get_name();
        return complain(error.what(), "see `" + command + " --help`", 2);
    }
}

}  // namespace

int main(int argc, char** argv) {
    hold_standard_descriptors();
    try {
        return run(argc, argv);
    } catch (const railmux::tools::UsageError& error) {
        return complain(error.what(), error.cure(), 2);
    } catch (const railmux::Error& error) {
        return complain(error.what(), error.cure(), 1);
    } catch (const std::exception& error) {
        return complain(error.what(), {}, 1);
    }
}

// The subcommands of `railmux`.
//
// Threads: one thread.
// Lifetime: what a subcommand parses into lives in its callback, that is, as long as the CLI::App.
#pragma once

#include <CLI/CLI.hpp>

namespace railmux::tools {

/// Each adds its subcommand; when the user chose it, parsing runs it and leaves its exit code in `exit_code`.
void add_info(CLI::App& railmux, int& exit_code);
void add_pingpong(CLI::App& railmux, int& exit_code);
void add_bandwidth(CLI::App& railmux, int& exit_code);
void add_put(CLI::App& railmux, int& exit_code);
void add_get(CLI::App& railmux, int& exit_code);
void add_atomic(CLI::App& railmux, int& exit_code);
void add_probe(CLI::App& railmux, int& exit_code);
void add_soak(CLI::App& railmux, int& exit_code);
void add_models(CLI::App& railmux, int& exit_code);
void add_explain(CLI::App& railmux, int& exit_code);
void add_trace(CLI::App& railmux, int& exit_code);
void add_replay(CLI::App& railmux, int& exit_code);
void add_run(CLI::App& railmux, int& exit_code);

}  // namespace railmux::tools

// `railmux trace`: what recorded decisions came to.
#include <fmt/format.h>

#include <memory>

#include "tools/commands.hpp"
#include "tools/files.hpp"
#include "tools/timeline.hpp"
#include "tools/trace_tables.hpp"

namespace railmux::tools {
namespace {

constexpr auto trace_help =
    R"(Reads what RAILMUX_TRACE=FILE recorded (%p in FILE: process id, %r: rank, %%: a %; in a job, where neither %p nor %r is
in it, the rank is appended behind a dot) and shows for each rail what it carried, how good the predictions were, and what
other choices would have gained.

  $ RAILMUX_TRACE=/tmp/trace railmux run -n 2 ./program
  $ railmux trace /tmp/trace.0 /tmp/trace.1
  $ railmux trace /tmp/trace.0 --chrome timeline.json     for chrome://tracing or ui.perfetto.dev: one row per rail

frames      frames and pieces of large messages that were handed to the rail; bytes with headers
timed       of these: how many deliveries are known to within a quarter of their time. Acknowledgements tell only when
            the newest frame that they cover arrived; the others are left out of what follows
error       |predicted - real| / real delivery
regret      real delivery less the earliest that was predicted for another link, where that is positive: what would
            have been gained by that link, had its prediction been right (a piece of a large message would have gone
            behind what was planned for that link). The mean is over all timed frames that had a choice)";

struct TraceCommand {
    std::vector<std::string> files;
    std::string chrome;
    bool json = false;
};

int show(const TraceCommand& command) {
    std::vector<trace::Trace> traces;
    for (const auto& path : command.files) {
        traces.push_back(trace::read_file(path));
        if (traces.back().cut) {
            fmt::print(stderr, "railmux: {} ends within a record: its process was killed, or its disk was full\n",
                       path);
        }
    }
    if (!command.chrome.empty()) {
        write_file(command.chrome, [&](std::ostream& file) { write_timeline(file, traces); });
    }
    const auto rails = trace::analyse(traces);
    fmt::print("{}", command.json ? one_line(trace_json(traces, rails)) : trace_table(traces, rails));
    return 0;
}

}  // namespace

void add_trace(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("trace", "show what recorded scheduling decisions came to");
    command->footer(trace_help);
    const auto options = std::make_shared<TraceCommand>();  // lives as long as the callback below
    command->add_option("files", options->files, "traces, of one process each")->type_name("FILE")->required();
    command->add_option("--chrome", options->chrome, "write a timeline there")->type_name("OUT.json");
    command->add_flag("--json", options->json, "one JSON object on standard output");
    command->callback([options, &exit_code] { exit_code = show(*options); });
}

}  // namespace railmux::tools

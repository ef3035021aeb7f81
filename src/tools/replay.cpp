// `railmux replay`: recorded messages once more, through any policy.
#include <fmt/format.h>

#include <memory>

#include "base/text.hpp"
#include "tools/commands.hpp"
#include "tools/trace_tables.hpp"
#include "tools/usage.hpp"

namespace railmux::tools {
namespace {

constexpr auto replay_help =
    R"(Runs the messages of a trace (RAILMUX_TRACE, see `railmux trace --help`) through other policies under a fake clock, so
that policies are compared on the same work, without a network. Each message comes when it came; each link behaves as
the model said when the message was decided about. What a policy would have changed in the program, which waits for
its messages, is not replayed.

  $ railmux replay /tmp/trace.0
  $ railmux replay /tmp/trace.0 --policies vft,round_robin
  $ railmux replay /tmp/trace.0 --policies vft:same_size,vft:size_aware,vft    terms of vft switched on one by one
  $ railmux replay /tmp/trace.0 --stages                                       all of them

Mean, median and p99: from the moment a message may go to its delivery. Makespan: from the first message to the last
delivery. A header that travels by itself (of a large message, or at the end) counts as a message, too.)";

struct ReplayCommand {
    std::string file;
    std::optional<std::string> policies;  // an empty list is a mistake, not all of them
    bool stages = false;
    bool json = false;
};

std::vector<std::string> wanted(const ReplayCommand& command) {
    std::vector<std::string> names;
    if (command.policies) {
        for (const auto name : base::split(*command.policies, ',')) names.emplace_back(name);
    } else if (!command.stages) {
        for (const auto name : base::split(sched::policy_names, '|')) names.emplace_back(name);
    }
    if (!command.stages) return names;
    for (const auto stage : base::split(trace::Replay::stage_names, '|')) names.push_back(fmt::format("vft:{}", stage));
    return names;
}

int replay(const ReplayCommand& command) {
    const auto trace = trace::read_file(command.file);
    const trace::Replay recorded(trace);
    std::vector<trace::ReplayResult> results;
    for (const auto& name : wanted(command)) {
        try {
            results.push_back(recorded.run(name));
        } catch (const Error& error) {
            throw UsageError(fmt::format("--policies: {}", error.what()), error.cure());
        }
    }
    fmt::print("{}", command.json ? one_line(replay_json(trace, results)) : replay_table(trace, results));
    return 0;
}

}  // namespace

void add_replay(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("replay", "run recorded messages through other policies");
    command->footer(replay_help);
    const auto options = std::make_shared<ReplayCommand>();  // lives as long as the callback below
    command->add_option("file", options->file, "a trace")->type_name("FILE")->required();
    command->add_option("--policies,--policy", options->policies, "policies, each a name or vft:STAGE; default: all")
        ->type_name("P[,P...]");
    command->add_flag("--stages", options->stages, "vft with its terms switched on one by one (docs/scheduling.md)");
    command->add_flag("--json", options->json, "one JSON object on standard output");
    command->callback([options, &exit_code] { exit_code = replay(*options); });
}

}  // namespace railmux::tools

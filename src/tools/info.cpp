// `railmux info`: the rails of this host, and every parameter.
#include <fmt/format.h>

#include <memory>

#include <railmux/context.hpp>

#include "base/copying.hpp"
#include "base/host.hpp"
#include "model/store.hpp"
#include "tools/benchmark.hpp"
#include "tools/commands.hpp"
#include "tools/inventory.hpp"

namespace railmux::tools {
namespace {

constexpr auto info_help =
    R"(Shows the rails that a context would see here, usable or not, and why not; three or more of one transport that are off
for one reason share a line. "eager B" is the largest message that goes with its header, by the models of earlier runs to other
processes; larger ones are asked for first (rendezvous), but for lone ones of up to 128K where that would take long, and where
rails register memory: docs/model.md.

  railmux info
  railmux info --rails 'tcp:eth*,^docker*'   as it would be with this selection
  railmux info --all                         every rail that is off, and what would help
  railmux info --config                      all parameters: value, where it comes from, default, meaning
  railmux info --json                        for scripts

See also `railmux models`: what earlier runs measured.)";

struct InfoOptions {
    ConfigOptions config;
    bool parameters = false;
    bool all = false;
    bool json = false;
};

struct EarlierModels {
    model::Store::Content content;
    std::string line;  // for people
};

EarlierModels read_models(const Config& config) {
    try {
        const auto where = model::StoreOptions::read(config);
        if (!where) return {.content = {}, .line = "models of earlier runs: none, there is no folder for them\n"};
        base::Logger log;
        auto content = model::Store(*where, log).content();
        auto line = fmt::format("models of earlier runs: {} in {} (see `railmux models`)\n", content.models.size(),
                                where->folder);
        return {std::move(content), std::move(line)};
    } catch (const Error& error) {
        return {.content = {}, .line = fmt::format("models of earlier runs: not usable: {}\n", error.what())};
    }
}

int show(const InfoOptions& options) {
    const auto config = make_config(options.config);
    for (const auto& warning : config.warnings()) fmt::print(stderr, "railmux: warning: {}\n", warning);
    if (options.parameters) {
        const auto parameters = config.parameters();
        fmt::print("{}", options.json ? parameters_json(parameters).dump() + "\n" : parameters_table(parameters));
    } else {
        const auto rails = scan_rails(config);
        const auto models = read_models(config);
        const bool fixed = config.is_set("eager.max");
        const auto eager = eager_maxima(rails, fixed ? model::Store::Content{} : models.content, base::host_name(),
                                        {base::measure_copying()}, config.number("eager.max"));
        fmt::print("{}", options.json ? rails_json(rails, eager).dump() + "\n"
                                      : rails_table(rails, eager, options.all) + "\n" + models.line);
    }
    return 0;
}

}  // namespace

void add_info(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("info", "show rails and parameters");
    command->footer(info_help);
    const auto options = std::make_shared<InfoOptions>();  // lives as long as the callback below
    command->add_flag("--config", options->parameters, "show the parameters instead of the rails");
    command->add_flag("--all", options->all, "every rail that is off in a line of its own");
    command->add_flag("--json", options->json, "one JSON object");
    add_config_options(*command, options->config);
    command->callback([options, &exit_code] { exit_code = show(*options); });
}

}  // namespace railmux::tools

// `railmux models`: what earlier runs measured, to see and to forget.
#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "model/store.hpp"
#include "tools/benchmark.hpp"
#include "tools/commands.hpp"
#include "tools/inventory.hpp"

namespace railmux::tools {
namespace {

constexpr auto models_help =
    R"(What was measured of a link is kept for later runs, which verify it with 8 messages and measure again only where it
does not hold any more (RAILMUX_PROBE=cached, the default). Models that no run has confirmed for 90 days go by themselves.
docs/model.md tells more.

  railmux models
  railmux models --clear     forget them all: every link will be measured again)";

struct ModelsOptions {
    bool clear = false;
    bool all = false;
    bool json = false;
};

base::Nanoseconds now_by_files() {
    return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

int show(const ModelsOptions& options) {
    const auto config = make_config({});
    const auto where = model::StoreOptions::read(config);
    if (!where) {
        throw Error(ErrorCode::invalid_config, "there is no folder for models",
                    "set RAILMUX_PROBE_STORE, XDG_CACHE_HOME or HOME to an absolute path");
    }
    base::Logger log;
    model::Store store(*where, log);
    if (options.clear) {
        const auto removed = store.clear();
        fmt::print(stderr, "railmux: {} models removed from {}\n", removed, where->folder);
        return 0;
    }
    auto content = store.content();
    if (options.json) {
        fmt::print("{}\n", models_json(std::move(content), now_by_files()).dump());
        return 0;
    }
    fmt::print("# {} models in {}; RAILMUX_PROBE is {}\n", content.models.size(), where->folder, config.text("probe"));
    fmt::print("{}", models_table(std::move(content), now_by_files(), options.all));
    return 0;
}

}  // namespace

void add_models(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("models", "show or forget what earlier runs measured");
    command->footer(models_help);
    const auto options = std::make_shared<ModelsOptions>();  // lives as long as the callback below
    auto* clear = command->add_flag("--clear", options->clear, "remove them all");
    command->add_flag("--all", options->all, "also older ones of the same links, by other versions of railmux")
        ->excludes(clear);
    command->add_flag("--json", options->json, "one JSON object, of all")->excludes(clear);
    command->callback([options, &exit_code] { exit_code = show(*options); });
}

}  // namespace railmux::tools

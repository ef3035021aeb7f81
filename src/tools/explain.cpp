// `railmux explain`: how messages to another process would go now, and why.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "tools/benchmark.hpp"
#include "tools/commands.hpp"
#include "tools/inventory.hpp"
#include "tools/sizes.hpp"

namespace railmux::tools {
namespace {

constexpr auto explain_help =
    R"(Shows for each size every link to the other process: its latency (L + o_s + o_r) and time per byte, the bytes that its
rail has still to do, the wait that follows, the predicted delivery; then the choice, marked with *, and its reason.
Messages too long for one frame may be split: "share" says how.

  host-a$ railmux explain --listen 5000
  host-b$ railmux explain --connect host-a:5000 --sizes 8,64K,16M
        $ railmux run -n 4 --hosts host-a,host-b railmux explain --peer 3 --sizes 1M

It explains an idle connection. In a program that is at work, railmux::Context::explain tells the same at any moment,
RAILMUX_EXPLAIN=20 explains the first 20 decisions on standard error, and RAILMUX_TRACE=FILE records all of them for
`railmux trace`.)";

struct ExplainCommand {
    SideOptions sides;
    std::string sizes = "8,64K,1M";
    bool json = false;
};

std::string shown(Nanos time) { return fmt::format("{:.2f}", time.count() / 1000); }

void print_table(const Explanation& told) {
    fmt::print("\n# {} bytes: {}\n", told.bytes,
               told.rendezvous    ? std::string("rendezvous, may be split")
               : told.frames == 1 ? fmt::format("one frame of {} bytes", told.wire_bytes)
                                  : fmt::format("{} frames, not asked for first", told.frames));
    std::vector<std::vector<std::string>> rows{{"  rail", "link", "latency us", "ns/byte", "gap us", "backlog B",
                                                "wait us", "delivery us", "share B", "share us"}};
    for (std::size_t i = 0; i < told.links.size(); ++i) {
        const auto& link = told.links[i];
        rows.push_back({(i == told.choice ? "* " : "  ") + link.rail, link.link, shown(link.latency),
                        fmt::format("{:.3f}", link.per_byte.count()), shown(link.gap),
                        std::to_string(link.backlog_bytes + link.claimed_bytes), shown(link.wait), shown(link.delivery),
                        std::to_string(link.share_bytes), shown(link.share_delivery)});
    }
    fmt::print("{}{}: {}\n", aligned(rows), told.links[told.choice].rail, told.reason);
    for (const auto& link : told.links) {
        if (!link.spare.empty()) fmt::print("{} is spare: {}\n", link.rail, link.spare);
    }
}

nlohmann::ordered_json json_of(const Explanation& told) {
    auto links = nlohmann::ordered_json::array();
    for (const auto& link : told.links) {
        links.push_back({{"rail", link.rail},
                         {"link", link.link},
                         {"latency_ns", link.latency.count()},
                         {"per_byte_ns", link.per_byte.count()},
                         {"gap_ns", link.gap.count()},
                         {"backlog_bytes", link.backlog_bytes},
                         {"claimed_bytes", link.claimed_bytes},
                         {"spare", link.spare},
                         {"recent", link.recent},
                         {"wait_ns", link.wait.count()},
                         {"delivery_ns", link.delivery.count()},
                         {"share_bytes", link.share_bytes},
                         {"share_delivery_ns", link.share_delivery.count()}});
    }
    return {{"bytes", told.bytes},
            {"rendezvous", told.rendezvous},
            {"frames", told.frames},
            {"wire_bytes", told.wire_bytes},
            {"choice", told.links[told.choice].rail},
            {"reason", told.reason},
            {"links", links}};
}

void explain(const ExplainCommand& command, Context& context, Peer peer, Driver& driver, const Config& config) {
    driver.settle();
    const auto with = context.name(peer);
    const auto policy = config.text("policy");
    auto results = nlohmann::ordered_json::array();
    if (!command.json) fmt::print("# railmux explain with {}, policy {}\n", with, policy);
    for (const auto size : parse_sizes(command.sizes)) {
        // All that was sent is there by then: what is shown is not the tool's own noise.
        context.flush(std::chrono::seconds(1));
        const auto told = context.explain(peer, size);
        if (command.json) {
            results.push_back(json_of(told));
        } else {
            print_table(told);
        }
    }
    if (!command.json) return;
    fmt::print(
        "{}\n",
        nlohmann::ordered_json{{"tool", "explain"}, {"peer", with}, {"policy", policy}, {"results", results}}.dump());
}

}  // namespace

void add_explain(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("explain", "say which rail a message would take, and why");
    command->footer(explain_help);
    const auto options = std::make_shared<ExplainCommand>();  // lives as long as the callback below
    add_side_options(*command, options->sides);
    command->add_option("--sizes,--size", options->sizes, "message sizes, e.g. 8,64,4K or doubling 1-1M")
        ->type_name("LIST")
        ->capture_default_str();
    command->add_flag("--json", options->json, "one JSON object on standard output");
    command->callback([options, &exit_code] {
        static_cast<void>(parse_sizes(options->sizes));  // before anything is opened
        exit_code = run_sides(options->sides, [&](Context& context, Peer peer, Driver& driver, const Config& config) {
            explain(*options, context, peer, driver, config);
        });
    });
}

}  // namespace railmux::tools

// `railmux probe`: measures the links to another process in full.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "model/picture.hpp"
#include "tools/benchmark.hpp"
#include "tools/commands.hpp"
#include "tools/files.hpp"
#include "tools/results.hpp"
#include "tools/sizes.hpp"

namespace railmux::tools {
namespace {

constexpr auto probe_help =
    R"(Measures each rail with trains of messages (PRTT) and fits the LogGP model: for each range of sizes the latency L, the
overheads of sender and receiver o_s and o_r, the gap g, and the bandwidth 1/G. docs/model.md tells how, and how the numbers
compare with other tools: half the round trip, which those call latency, is about L + o_s + o_r and the jitter.
Then floods the rails alone and in pairs, to see which share a bottleneck: a port, a switch, an uplink, a CPU.

  host-a$ railmux probe --listen 5000
  host-b$ railmux probe --connect host-a:5000 --svg rails.svg
  host-b$ railmux probe --connect host-a:5000 --rails tcp:eth1 --json
        $ railmux run -n 2 railmux probe)";

/// Where the model of each link came from before it was measured, by the link's name.
using Before = std::map<std::string, ModelSource>;

struct ProbeCommand {
    SideOptions sides;
    AssessOptions assess;
    std::string max_bytes = "0";
    bool json = false;
    std::string points;
    std::string svg;
};

std::string_view source_in(const Before& before, const LinkAssessment& link) {
    const auto found = before.find(link.link.link);
    return to_string(found == before.end() ? ModelSource::guess : found->second);
}

double us(Nanos time) { return time.count() / 1000; }

void print_table(std::string_view with, const std::vector<LinkAssessment>& links, const Before& before) {
    fmt::print("# railmux probe with {}\n", with);
    constexpr auto row = "{:<20} {:<9} {:<9} {:>12} {:>9} {:>9} {:>9} {:>9} {:>11} {:>10} {:>11} {:>8} {:>9}\n";
    fmt::print(row, "# rail", "source", "before", "up to bytes", "L us", "o_s us", "o_r us", "g us", "Mbit/s",
               "confidence", "half rt us", "points", "took ms");
    const auto number = [](double value) { return fmt::format("{:.2f}", value); };
    for (const auto& link : links) {
        for (const auto& range : link.link.model.ranges) {
            const bool last = range.up_to_bytes == std::numeric_limits<std::uint64_t>::max();
            fmt::print(row, link.link.rail, to_string(link.link.source), source_in(before, link),
                       last ? std::string("any") : std::to_string(range.up_to_bytes), number(us(range.L.of(1))),
                       number(us(range.o_s.of(1))), number(us(range.o_r.of(1))), number(us(range.g)),
                       fmt::format("{:.1f}", range.G.bits_per_second() / 1e6), number(range.confidence.least()),
                       number(us(link.link.model.half_round_trip)), link.points.size(),
                       number(static_cast<double>(link.took.count()) / 1e6));
        }
        fmt::print("{}", unmeasured_text(link));
    }
}

void print_sharing(const SharingAssessment& sharing) {
    for (const auto& pair : sharing.pairs) fmt::print("# {}\n", pair.text);
}

void print_json(const std::vector<LinkAssessment>& links, const Before& before, const SharingAssessment& sharing) {
    nlohmann::json results = nlohmann::json::array();
    for (const auto& link : links) {
        results.push_back({{"rail", link.link.rail},
                           {"link", link.link.link},
                           {"source", to_string(link.link.source)},
                           {"before", source_in(before, link)},
                           {"model", nlohmann::json::parse(to_json(link.link.model))},
                           {"missing_bytes", link.missing},
                           {"interrupted_bytes", link.interrupted},
                           {"messages", link.spent.messages},
                           {"bytes", link.spent.bytes},
                           {"cpu_ns", link.spent.cpu.count()},
                           {"took_ns", link.took.count()}});
    }
    nlohmann::json pairs = nlohmann::json::array();
    for (const auto& pair : sharing.pairs) {
        pairs.push_back({{"rail", pair.rail},
                         {"added", pair.added},
                         {"rail_bps", pair.rail_bps},
                         {"added_bps", pair.added_bps},
                         {"together_bps", pair.together_bps},
                         {"shared", pair.shared}});
    }
    nlohmann::json groups = nlohmann::json::array();
    for (const auto& group : sharing.groups) {
        groups.push_back({{"rails", group.rails}, {"bps", group.bits_per_second}});
    }
    const nlohmann::json all{{"tool", "probe"}, {"results", results}, {"pairs", pairs}, {"groups", groups}};
    fmt::print("{}\n", all.dump());
}

std::string csv_of(const std::vector<LinkAssessment>& links) {
    std::string text =
        "rail,n,bytes,delay_ns,prtt_ns,held_ns,send_cpu_ns,receive_cpu_ns,mirror_receive_cpu_ns,unseen_ns,late,"
        "interrupted\n";
    for (const auto& link : links) {
        for (const auto& p : link.points) {
            text += fmt::format("{},{},{},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:.0f},{:d},{:d}\n", link.link.rail,
                                p.n, p.bytes, p.delay.count(), p.prtt.count(), p.held.count(), p.send_cpu.count(),
                                p.receive_cpu.count(), p.mirror_receive_cpu.count(), p.unseen.count(), p.late,
                                p.interrupted);
        }
    }
    return text;
}

/// What the fit saw of a point.
model::Sample sample_of(const ProbePoint& point) {
    const auto ns = [](Nanos time) { return static_cast<base::Nanoseconds>(time.count()); };
    model::Sample sample{.train = {.n = point.n, .bytes = point.bytes, .delay = ns(point.delay)}};
    sample.round_trip = ns(point.prtt + point.held);
    sample.idle = ns(point.delay) * (point.n - 1);
    sample.send_cpu = ns(point.send_cpu);
    sample.mirror_held = ns(point.held);
    return sample;
}

std::string picture_of(std::string_view with, const std::vector<LinkAssessment>& links) {
    std::vector<model::PictureRail> rails;
    for (const auto& link : links) {
        std::vector<model::Sample> samples;
        for (const auto& point : link.points) {
            if (!point.late && !point.interrupted) samples.push_back(sample_of(point));
        }
        rails.push_back({link.link.rail, model::summarise_sizes(samples).sizes, link.link.model});
    }
    return model::draw_probe(rails, fmt::format("railmux probe with {}", with));
}

struct Probed {
    std::string with;
    Before before;
    std::vector<LinkAssessment> links;
    SharingAssessment sharing;
};

Probed probe(const ProbeCommand& command, Context& context, Peer server, Driver& driver) {
    driver.settle();
    auto options = command.assess;
    options.progress = [](std::string_view rail, double done) {
        const auto marks = static_cast<std::size_t>(done * 40);
        show_progress(fmt::format("{:<20} [{:<40}] {:3.0f} %", rail, std::string(marks, '#'), done * 100));
    };
    Before before;
    for (const auto& link : context.models(server)) before[link.link] = link.source;
    auto links = context.assess(server, "all", options);
    auto sharing = context.assess_sharing(server, "all", {options.progress});
    show_progress("");
    if (links.size() < before.size()) {
        fmt::print(stderr, "railmux: {} of {} links died while they were measured\n", before.size() - links.size(),
                   before.size());
    }
    if (links.empty()) throw Error(ErrorCode::unreachable, "no link could be measured", "see `railmux info`");
    return {context.name(server), std::move(before), std::move(links), std::move(sharing)};
}

void show(const ProbeCommand& command, const Probed& probed) {
    const auto& [with, before, links, sharing] = probed;
    if (!command.points.empty()) write_file(command.points, csv_of(links));
    if (!command.svg.empty()) write_file(command.svg, picture_of(with, links));
    if (command.json) {
        print_json(links, before, sharing);
    } else {
        print_table(with, links, before);
        print_sharing(sharing);
    }
}

}  // namespace

void add_probe(CLI::App& railmux, int& exit_code) {
    auto* command = railmux.add_subcommand("probe", "measure the rails between two processes: the LogGP model");
    command->footer(probe_help);
    const auto options = std::make_shared<ProbeCommand>();  // lives as long as the callback below
    add_side_options(*command, options->sides);
    command->add_option("--train", options->assess.n, "messages of a train")
        ->type_name("N")
        ->check(CLI::Range(2, 64))
        ->capture_default_str();
    command->add_option("--grid", options->assess.sizes, "how many sizes, at equal distances")
        ->type_name("N")
        ->check(CLI::Range(2, 1024))
        ->capture_default_str();
    command->add_option("--rounds", options->assess.rounds, "times each size is measured")
        ->type_name("N")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    command
        ->add_option("--max-bytes", options->max_bytes,
                     "largest message, e.g. 8K; 0: 1 MiB, or the largest frame of the rail")
        ->type_name("SIZE")
        ->capture_default_str();
    command
        ->add_option("--look-ahead", options->assess.look_ahead,
                     "sizes in a row that must leave the line of those before where a rail changes its protocol")
        ->type_name("N")
        ->check(CLI::Range(3, 16))
        ->capture_default_str();
    command
        ->add_option("--factor", options->assess.factor,
                     "... each raising the mean square deviation by this much; less finds more changes")
        ->type_name("X")
        ->check(CLI::Range(1.1, 1000.0))
        ->capture_default_str();
    command->add_flag("--json", options->json, "one JSON object on standard output");
    command->add_option("--points", options->points, "write all raw points there, comma-separated")->type_name("FILE");
    command->add_option("--svg", options->svg, "draw points, fits and protocol changes there")->type_name("FILE");
    command->callback([options, &exit_code] {
        if (std::isnan(options->assess.factor))
            throw UsageError("--factor: nan is no number", "name one from 1.1 to 1000");
        options->assess.max_bytes = parse_size("--max-bytes", options->max_bytes);
        std::optional<Probed> probed;
        exit_code = run_sides(options->sides, [&](Context& context, Peer server, Driver& driver, const Config&) {
            probed = probe(*options, context, server, driver);
        });
        if (probed)
            show(*options, *probed);  // now that the other side has ended well, which it might not if this failed
    });
}

}  // namespace railmux::tools

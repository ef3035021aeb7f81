#include "tools/inventory.hpp"

#include <fmt/format.h>

#include <railmux/version.hpp>

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "model/eager.hpp"

namespace railmux::tools {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// So many rails that are off for the same reason stand in one line.
constexpr std::ptrdiff_t least_folded = 3;

constexpr std::size_t meaning_width = 80;

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

void sort(model::Store::Content& content) {
    std::ranges::sort(content.models, [](const auto& a, const auto& b) {
        return a.entry.link != b.entry.link ? a.entry.link < b.entry.link : a.written > b.written;
    });
}

/// `text` in lines of at most `width` characters, but for words that are longer; at least one.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
    std::vector<std::string> lines;
    while (text.size() > width) {
        auto end = text.rfind(' ', width);
        if (end == std::string_view::npos) end = text.find(' ');
        if (end == std::string_view::npos) break;
        lines.emplace_back(text.substr(0, end));
        text.remove_prefix(end + 1);
    }
    lines.emplace_back(text);
    return lines;
}

std::string age_text(base::Nanoseconds age) {
    const auto minutes = std::max<base::Nanoseconds>(age, 0) / (60 * base::second);
    if (minutes < 120) return fmt::format("{} min", minutes);
    if (minutes < 48 * 60) return fmt::format("{} h", minutes / 60);
    return fmt::format("{} days", minutes / (24 * 60));
}

/// Of rails that count as one.
std::string by_processors(std::span<const RailInfo> rails) {
    std::vector<std::string> names;
    for (const auto& rail : rails) {
        if (rail.usable && rail.by_processors) names.push_back(rail.name);
    }
    if (names.size() < 2) return {};
    return fmt::format(
        "\n{}: the processors of this host move the bytes of each; to a peer the fastest is used, the others "
        "are spare\n",
        base::join(names, ", "));
}

std::string eager_text(const EagerMaxima& eager, std::string_view rail) {
    const auto found = eager.find(rail);
    if (found == eager.end()) return "-";
    const auto [least, most] = found->second;
    return least == most ? std::to_string(most) : fmt::format("{}-{}", least, most);
}

nlohmann::ordered_json document(std::string_view tool) { return {{"tool", tool}, {"version", RAILMUX_VERSION}}; }

}  // namespace

std::string aligned(std::span<const std::vector<std::string>> rows) {
    std::vector<std::size_t> widths;
    for (const auto& row : rows) {
        widths.resize(std::max(widths.size(), row.size()));
        for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows) {
        std::string line;
        for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
    }
    return text;
}

std::string speed_text(std::uint64_t bits_per_second) {
    const auto bits = static_cast<double>(bits_per_second);
    if (bits_per_second == 0) return "-";
    if (bits_per_second >= 1'000'000'000) return fmt::format("{:.3g} Gbit/s", bits / 1e9);
    return fmt::format("{:.3g} Mbit/s", bits / 1e6);
}

EagerMaxima eager_maxima(std::span<const RailInfo> rails, const model::Store::Content& content, std::string_view host,
                         PerByte copying, std::uint64_t bound) {
    EagerMaxima maxima;
    for (const auto& rail : rails) {
        if (!rail.usable) continue;
        EagerMax found{.least = bound, .most = 0};
        for (const auto& kept : content.models) {
            if (kept.entry.version != RAILMUX_VERSION || !kept.entry.link.starts_with(model::StoreEntry::for_people(
                                                             model::StoreEntry::link_from(host, rail.name, "")))) {
                continue;
            }
            const auto limit = model::eager_max(
                kept.entry.model, {.copying = copying, .by_processors = rail.by_processors}, {.most = bound});
            found = {std::min(found.least, limit), std::max(found.most, limit)};
        }
        if (found.most == 0) found.most = bound;
        maxima.emplace(rail.name, found);
    }
    return maxima;
}

std::string rails_table(std::span<const RailInfo> rails, const EagerMaxima& eager, bool all) {
    Rows rows{{"rail", "state", "kind", "speed", "eager B", "numa", "addresses", "reason"}};
    std::vector<std::pair<std::string, std::string>> cures;  // rail and cure
    bool folded = false;
    for (auto rail = rails.begin(); rail != rails.end(); ++rail) {
        const auto alike = [&](const RailInfo& other) {
            return !other.usable && other.transport == rail->transport && other.reason == rail->reason;
        };
        if (!all && !rail->usable && std::ranges::count_if(rails, alike) >= least_folded) {
            if (std::find_if(rails.begin(), rail, alike) == rail) {
                rows.push_back({fmt::format("{}: {} rails", rail->transport, std::ranges::count_if(rails, alike)),
                                "off", "-", "-", "-", "-", "-", rail->reason});
            }
            folded = true;
            continue;
        }
        rows.push_back({rail->name, rail->usable ? "usable" : "off", or_dash(rail->kind), speed_text(rail->speed_bps),
                        eager_text(eager, rail->name), rail->numa_node < 0 ? "-" : std::to_string(rail->numa_node),
                        or_dash(base::join(rail->addresses, " ")), rail->reason});
        if (!rail->cure.empty()) cures.emplace_back(rail->name, rail->cure);
    }
    auto text = aligned(rows);
    text += by_processors(rails);
    if (!cures.empty() || folded) text += "\n";
    for (const auto& [name, cure] : cures) text += fmt::format("cure for {}: {}\n", name, cure);
    if (folded) text += "`railmux info --all` lists every rail that is off, and what would help\n";
    return text;
}

nlohmann::ordered_json rails_json(std::span<const RailInfo> rails, const EagerMaxima& eager) {
    auto result = document("info");
    auto& list = result["rails"] = nlohmann::ordered_json::array();
    for (const auto& rail : rails) {
        list.push_back({{"name", rail.name},
                        {"transport", rail.transport},
                        {"device", rail.device},
                        {"usable", rail.usable},
                        {"reason", rail.reason},
                        {"cure", rail.cure},
                        {"kind", rail.kind},
                        {"speed_bps", rail.speed_bps},
                        {"numa_node", rail.numa_node},
                        {"by_processors", rail.by_processors},
                        {"addresses", rail.addresses}});
        if (const auto found = eager.find(rail.name); found != eager.end())
            list.back()["eager_max"] = {{"least", found->second.least}, {"most", found->second.most}};
    }
    return result;
}

std::string models_table(model::Store::Content content, base::Nanoseconds now, bool all) {
    sort(content);
    Rows rows{{"link", "up to bytes", "half rt us", "Mbit/s", "confidence", "version", "age"}};
    std::size_t older =
        0;  // by their keys, not by their names: links to several hosts, or rails of one, may share a name
    for (const auto& kept : content.models) {
        const auto replaces = [&](const auto& other) {
            return other.entry.key == kept.entry.key && other.written > kept.written;
        };
        if (!all && std::ranges::any_of(content.models, replaces)) {
            ++older;
            continue;
        }
        const auto& m = kept.entry.model;
        for (const auto& range : m.ranges) {
            const bool last = range.up_to_bytes == std::numeric_limits<std::uint64_t>::max();
            rows.push_back({kept.entry.link, last ? "any" : std::to_string(range.up_to_bytes),
                            fmt::format("{:.2f}", m.half_round_trip.count() / 1000),
                            fmt::format("{:.1f}", range.G.bits_per_second() / 1e6),
                            fmt::format("{:.2f}", range.confidence.least()), kept.entry.version,
                            age_text(now - kept.written)});
        }
    }
    const auto refused = fmt::format(
        "{} damaged or foreign files, which the next measurement of their links replaces\n", content.refused);
    const auto hidden =
        fmt::format("{} more of the same links, older, by other versions of railmux: railmux models --all\n", older);
    return aligned(rows) + (older == 0 ? "" : hidden) + (content.refused == 0 ? "" : refused);
}

nlohmann::ordered_json models_json(model::Store::Content content, base::Nanoseconds now) {
    sort(content);
    auto result = document("models");
    result["refused"] = content.refused;
    auto& list = result["models"] = nlohmann::ordered_json::array();
    for (const auto& kept : content.models) {
        list.push_back({{"link", kept.entry.link},
                        {"version", kept.entry.version},
                        {"local", fmt::format("{:016x}", kept.entry.key.local)},
                        {"remote", fmt::format("{:016x}", kept.entry.key.remote)},
                        {"age_s", std::max<base::Nanoseconds>(now - kept.written, 0) / base::second},
                        {"model", nlohmann::ordered_json::parse(to_json(kept.entry.model))}});
    }
    return result;
}

std::string parameters_table(std::span<const Parameter> parameters) {
    Rows rows{{"parameter", "value", "from", "default", "meaning"}};
    for (const auto& p : parameters) {
        auto meaning = wrapped(p.help, meaning_width);
        rows.push_back({p.name, or_dash(p.value), p.source, or_dash(p.default_value), meaning.front()});
        for (std::size_t i = 1; i < meaning.size(); ++i) rows.push_back({"", "", "", "", meaning[i]});
    }
    return "# each is a variable, too: eager.max is RAILMUX_EAGER_MAX\n" + aligned(rows);
}

nlohmann::ordered_json parameters_json(std::span<const Parameter> parameters) {
    auto result = document("info");
    auto& list = result["parameters"] = nlohmann::ordered_json::array();
    for (const auto& p : parameters) {
        list.push_back({{"name", p.name},
                        {"variable", p.variable},
                        {"type", p.type},
                        {"unit", p.unit},
                        {"default", p.default_value},
                        {"value", p.value},
                        {"source", p.source},
                        {"help", p.help}});
    }
    return result;
}

}  // namespace railmux::tools

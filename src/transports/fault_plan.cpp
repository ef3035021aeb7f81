#include "transports/fault_plan.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <random>

#include <railmux/error.hpp>

namespace railmux::transports {

namespace {

constexpr std::array<std::string_view, 8> names{"refuse", "delay_work", "delay",     "duplicate",
                                                "stall",  "kill_work",  "kill_link", "corrupt"};

[[noreturn]] void malformed(std::string_view rule) {
    throw Error(ErrorCode::invalid_argument, "malformed fault \"" + std::string(rule) + "\"",
                "write NAME@N[:POLLS] or NAME=P%[:POLLS]; src/transports/fault_plan.hpp lists the names");
}

template <typename Number>
Number parse_number(std::string_view text, std::string_view rule) {
    Number value{};
    const auto end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stop != end || text.empty()) malformed(rule);
    return value;
}

FaultRule parse_rule(std::string_view text) {
    FaultRule rule;
    const auto sign = text.find_first_of("@=");
    if (sign == text.npos) malformed(text);
    const auto name = std::ranges::find(names, text.substr(0, sign));
    if (name == names.end()) malformed(text);
    rule.fault = static_cast<Fault>(name - names.begin());
    auto value = text.substr(sign + 1);
    if (const auto colon = value.find(':'); colon != value.npos) {
        rule.polls = parse_number<std::uint32_t>(value.substr(colon + 1), text);
        value = value.substr(0, colon);
    }
    if (text[sign] == '@') {
        rule.at = parse_number<std::uint64_t>(value, text);
        if (rule.at == 0) malformed(text);
    } else {
        if (!value.ends_with('%')) malformed(text);
        value.remove_suffix(1);
        rule.percent = parse_number<std::uint32_t>(value, text);
        if (rule.percent > 100) malformed(text);
    }
    return rule;
}

}  // namespace

FaultPlan FaultPlan::parse(std::string_view text) {
    FaultPlan plan;
    while (!text.empty()) {
        const auto comma = std::min(text.find(','), text.size());
        const auto rule = text.substr(0, comma);
        text.remove_prefix(std::min(comma + 1, text.size()));
        if (rule.starts_with("seed=")) {
            plan.seed = parse_number<std::uint64_t>(rule.substr(5), rule);
        } else {
            plan.rules.push_back(parse_rule(rule));
        }
    }
    return plan;
}

FaultPlan FaultPlan::random(std::uint64_t seed) {
    std::mt19937_64 numbers(seed);
    const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(numbers() % limit); };
    FaultPlan plan{.seed = seed, .rules = {}};
    plan.rules.push_back({.fault = Fault::refuse, .percent = below(30)});
    plan.rules.push_back({.fault = Fault::delay_work, .percent = below(10), .polls = 1 + below(8)});
    plan.rules.push_back({.fault = Fault::delay, .percent = below(10), .polls = 1 + below(8)});
    const std::uint64_t at = 1 + below(1000);
    switch (below(6)) {
        case 0: plan.rules.push_back({.fault = Fault::duplicate, .percent = 1 + below(20)}); break;
        case 1: plan.rules.push_back({.fault = Fault::stall, .at = at, .polls = 1 + below(10'000)}); break;
        case 2: plan.rules.push_back({.fault = Fault::stall, .at = at}); break;
        case 3: plan.rules.push_back({.fault = Fault::kill_work, .at = at}); break;
        case 4: plan.rules.push_back({.fault = Fault::kill_link, .at = at}); break;
        default: break;
    }
    return plan;
}

std::string FaultPlan::text() const {
    std::string text = "seed=" + std::to_string(seed);
    for (const auto& rule : rules) {
        text += "," + std::string(names[static_cast<std::size_t>(rule.fault)]);
        text += rule.at != 0 ? "@" + std::to_string(rule.at) : "=" + std::to_string(rule.percent) + "%";
        if (rule.polls != 0) text += ":" + std::to_string(rule.polls);
    }
    return text;
}

}  // namespace railmux::transports

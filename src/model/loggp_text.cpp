// The forms in which a model is written down. Both are read as untrusted input.
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/text.hpp"

#include <railmux/loggp.hpp>

namespace railmux {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view cure = "measure the link again; a file that was damaged can be deleted";

[[noreturn]] void refuse(const std::string& what) {
    throw Error(ErrorCode::invalid_argument, "not a model of a link: " + what, std::string(cure));
}

/// As much of a text as tells where the trouble is, printable.
std::string quoted(std::string_view text) {
    std::string result = "\"";
    for (const char c : text.substr(0, 40)) result += c >= ' ' && c <= '~' ? c : '?';
    return result + "\"";
}

// --- Text ------------------------------------------------------------------------------------------------------------

template <typename Number>
std::string written(Number number) {
    std::array<char, 32> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;  // shortest that is exact
    return {digits.data(), end};
}

std::string written(const Linear& value) { return written(value.fixed.count()) + "," + written(value.per_byte.ns); }

template <typename Number>
Number number_in(std::string_view text, std::string_view key) {
    Number number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || end != text.data() + text.size() || text.empty()) {
        refuse(std::string(key) + " is not a number: " + quoted(text));
    }
    return number;
}

/// The words of one line, taken off its front one after the other.
class Words {
public:
    explicit Words(std::string_view line) : left_(line) {}

    std::string_view next() {
        const auto word = left_.substr(0, left_.find(' '));
        left_.remove_prefix(std::min(left_.size(), word.size() + 1));
        return word;
    }
    /// The value of the next word, which is key=value.
    std::string_view value(std::string_view key) {
        const auto word = next();
        if (word.size() <= key.size() || !word.starts_with(key) || word[key.size()] != '=') {
            refuse("expected " + std::string(key) + "=, found " + quoted(word));
        }
        return word.substr(key.size() + 1);
    }
    double number(std::string_view key) { return number_in<double>(value(key), key); }
    Linear linear(std::string_view key) {
        const auto parts = base::split(value(key), ',');
        if (parts.size() != 2) refuse(std::string(key) + " needs a fixed part and a part per byte");
        return {Nanos(number_in<double>(parts[0], key)), {number_in<double>(parts[1], key)}};
    }
    void end() const {
        if (!left_.empty()) refuse("too much on a line: " + quoted(left_));
    }

private:
    std::string_view left_;
};

ProtocolRange read_range(std::string_view line) {
    Words words(line);
    if (words.next() != "range") refuse("expected a line that begins with range");
    ProtocolRange range;
    range.up_to_bytes = number_in<std::uint64_t>(words.value("up_to"), "up_to");
    range.L = words.linear("L");
    range.o_s = words.linear("o_s");
    range.o_r = words.linear("o_r");
    range.g = Nanos(words.number("g"));
    range.G.ns = words.number("G");
    const auto parts = base::split(words.value("confidence"), ',');
    if (parts.size() != 5) refuse("confidence needs five numbers");
    auto& c = range.confidence;
    const std::array<double*, 5> targets{&c.L, &c.o_s, &c.o_r, &c.g, &c.G};
    for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = number_in<double>(parts[i], "confidence");
    words.end();
    return range;
}

std::string range_text(const ProtocolRange& range) {
    const auto& c = range.confidence;
    return "range up_to=" + written(range.up_to_bytes) + " L=" + written(range.L) + " o_s=" + written(range.o_s) +
           " o_r=" + written(range.o_r) + " g=" + written(range.g.count()) + " G=" + written(range.G.ns) +
           " confidence=" + written(c.L) + "," + written(c.o_s) + "," + written(c.o_r) + "," + written(c.g) + "," +
           written(c.G) + "\n";
}

// --- JSON ------------------------------------------------------------------------------------------------------------

Json json_of(const Linear& value) { return {{"ns", value.fixed.count()}, {"ns_per_byte", value.per_byte.ns}}; }

Json json_of(const ProtocolRange& range) {
    const auto& c = range.confidence;
    return {{"up_to_bytes", range.up_to_bytes},
            {"L", json_of(range.L)},
            {"o_s", json_of(range.o_s)},
            {"o_r", json_of(range.o_r)},
            {"g_ns", range.g.count()},
            {"G_ns_per_byte", range.G.ns},
            {"confidence", {{"L", c.L}, {"o_s", c.o_s}, {"o_r", c.o_r}, {"g", c.g}, {"G", c.G}}}};
}

const Json& member(const Json& object, const char* key) {
    if (!object.is_object()) refuse("expected an object with a member " + std::string(key));
    const auto found = object.find(key);
    if (found == object.end()) refuse("no member " + std::string(key));
    return *found;
}

double number(const Json& object, const char* key) {
    const auto& value = member(object, key);
    if (!value.is_number()) refuse(std::string(key) + " is not a number");
    return value.get<double>();
}

Linear linear(const Json& object, const char* key) {
    const auto& value = member(object, key);
    return {Nanos(number(value, "ns")), {number(value, "ns_per_byte")}};
}

ProtocolRange range_of(const Json& object) {
    ProtocolRange range;
    const auto& up_to = member(object, "up_to_bytes");
    if (!up_to.is_number_unsigned()) refuse("up_to_bytes is not a count");
    range.up_to_bytes = up_to.get<std::uint64_t>();
    range.L = linear(object, "L");
    range.o_s = linear(object, "o_s");
    range.o_r = linear(object, "o_r");
    range.g = Nanos(number(object, "g_ns"));
    range.G.ns = number(object, "G_ns_per_byte");
    const auto& c = member(object, "confidence");
    range.confidence = {number(c, "L"), number(c, "o_s"), number(c, "o_r"), number(c, "g"), number(c, "G")};
    return range;
}

LogGP checked(LogGP model) {
    if (!valid(model)) refuse("a number is out of bounds, or the ranges of sizes do not ascend to the maximum");
    return model;
}

void check_count(std::size_t ranges) {
    if (ranges > LogGP::max_ranges) refuse("more than " + std::to_string(LogGP::max_ranges) + " ranges of sizes");
}

}  // namespace

std::string to_text(const LogGP& model) {
    auto text = "loggp 1 half_round_trip=" + written(model.half_round_trip.count()) +
                " jitter=" + written(model.jitter.count()) + "\n";
    for (const auto& range : model.ranges) text += range_text(range);
    return text;
}

LogGP loggp_from_text(std::string_view text) {
    auto lines = base::split(text, '\n');  // trimmed
    while (!lines.empty() && lines.back().empty()) lines.pop_back();
    if (lines.empty()) refuse("nothing there");
    Words words(lines.front());
    if (words.next() != "loggp") refuse("the first line does not begin with loggp");
    if (words.next() != "1") refuse("another version of the format");
    LogGP model;
    model.half_round_trip = Nanos(words.number("half_round_trip"));
    model.jitter = Nanos(words.number("jitter"));
    words.end();
    check_count(lines.size() - 1);
    model.ranges.clear();
    for (std::size_t i = 1; i < lines.size(); ++i) model.ranges.push_back(read_range(lines[i]));
    return checked(std::move(model));
}

std::string to_json(const LogGP& model) {
    Json object{{"format", "loggp 1"},
                {"half_round_trip_ns", model.half_round_trip.count()},
                {"jitter_ns", model.jitter.count()}};
    auto& list = object["ranges"] = Json::array();
    for (const auto& range : model.ranges) list.push_back(json_of(range));
    return object.dump();
}

LogGP loggp_from_json(std::string_view json) {
    // A limit to the depth: the parser below recurses.
    const auto too_deep = [](int depth, Json::parse_event_t, Json&) {
        if (depth > 8) refuse("nested too deep");
        return true;
    };
    Json object;
    try {
        object = Json::parse(json, too_deep);
    } catch (const Json::exception& error) {
        refuse(error.what());
    }
    if (member(object, "format") != "loggp 1") refuse("another version of the format");
    LogGP model;
    model.half_round_trip = Nanos(number(object, "half_round_trip_ns"));
    model.jitter = Nanos(number(object, "jitter_ns"));
    const auto& list = member(object, "ranges");
    if (!list.is_array()) refuse("ranges is not a list");
    check_count(list.size());
    model.ranges.clear();
    for (const auto& entry : list) model.ranges.push_back(range_of(entry));
    return checked(std::move(model));
}

}  // namespace railmux

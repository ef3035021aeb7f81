#include <railmux/config.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <railmux/error.hpp>

#include "base/environment.hpp"
#include "base/parameters.hpp"
#include "base/text.hpp"

namespace railmux {
namespace {

using base::ParameterType;

constexpr std::string_view from_default = "default";
constexpr std::string_view from_environment = "environment";
constexpr std::string_view from_api = "api";

[[noreturn]] void unknown_parameter(std::string_view where, std::string_view name) {
    throw Error(
        ErrorCode::invalid_config,
        fmt::format("{}unknown parameter \"{}\"{}", where, name, base::did_you_mean(name, base::parameter_names())),
        "`railmux info --config` lists them all");
}

// The index of a parameter the program itself asks for.
std::size_t known(std::string_view name) {
    if (const auto index = base::find_parameter(name)) return *index;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("there is no parameter \"{}\"{}", name, base::did_you_mean(name, base::parameter_names())),
                "`railmux info --config` lists them all");
}

[[noreturn]] void wrong_type(std::string_view name, std::string_view read_as) {
    throw Error(ErrorCode::invalid_argument, fmt::format("parameter \"{}\" is not a {}", name, read_as),
                "Config::text reads any parameter; `railmux info --config --json` shows their types");
}

// A line without its comment: `#` at the start or after a blank, so that values may contain one.
std::string_view without_comment(std::string_view line) {
    for (std::size_t at = line.find('#'); at != line.npos; at = line.find('#', at + 1)) {
        if (at == 0 || line[at - 1] == ' ' || line[at - 1] == '\t') return line.substr(0, at);
    }
    return line;
}

bool others_may_read(const std::string& path) {
    std::error_code error;
    const auto rights = std::filesystem::status(path, error).permissions();
    using std::filesystem::perms;
    return !error && (rights & (perms::group_read | perms::others_read)) != perms::none;
}

// How an error names the place a value came from.
std::string place(std::string_view name, std::string_view source) {
    if (source == from_environment) return base::variable_name(name);
    if (source.starts_with("file ")) return fmt::format("{}: {}", source.substr(5), name);
    return fmt::format("parameter {}", name);
}

}  // namespace

Config::Config() {
    const auto table = base::parameter_table();
    values_.resize(table.size());
    for (std::size_t i = 0; i < table.size(); ++i) assign(i, table[i].default_value, std::string(from_default));
}

Config Config::load() {
    Config config;
    if (const auto path = base::variable(base::variable_name("config"))) config.read_file(*path);
    config.read_environment();
    return config;
}

void Config::read_file(const std::string& path) {
    std::ifstream file(path);
    if (!file) {
        throw Error(ErrorCode::invalid_config, fmt::format("config file {}: {}", path, std::strerror(errno)),
                    "correct the path (RAILMUX_CONFIG) or create the file");
    }
    std::string line;
    for (int number = 1; std::getline(file, line); ++number) {
        const auto text = base::trim(without_comment(line));
        if (text.empty()) continue;
        const auto where = fmt::format("{}:{}", path, number);
        const auto equals = text.find('=');
        if (equals == text.npos) {
            throw Error(ErrorCode::invalid_config, fmt::format("{}: \"{}\" is not `name = value`", where, text),
                        "write e.g. `tcp.interfaces = eth*`");
        }
        const auto name = base::trim(text.substr(0, equals));
        const auto index = base::find_parameter(name);
        if (!index) unknown_parameter(where + ": ", name);
        if (name == "config") {
            throw Error(ErrorCode::invalid_config, where + ": a config file cannot name another",
                        "set RAILMUX_CONFIG to one file");
        }
        if (base::parameter_table()[*index].type == base::ParameterType::secret && others_may_read(path)) {
            warnings_.push_back(fmt::format("{0} has the job's key, and other users may read it; chmod 600 {0}", path));
        }
        auto& source = values_[*index].source;
        // The file stands below the environment and set(), even when it is read after them.
        const bool outranked = source == from_environment || source == from_api;
        const auto value = base::trim(text.substr(equals + 1));
        if (outranked) {
            static_cast<void>(
                base::check_value(base::parameter_table()[*index], value, fmt::format("{}: {}", where, name)));
        } else {
            assign(*index, value, "file " + where);
        }
    }
}

void Config::read_environment() {
    const auto known_variables = base::variable_names();
    for (const auto& [name, value] : base::variables("RAILMUX_")) {
        std::size_t index = 0;
        while (index < known_variables.size() && known_variables[index] != name) ++index;
        if (index < known_variables.size()) {
            assign(index, value, std::string(from_environment));
            continue;
        }
        warnings_.push_back(
            fmt::format("unknown variable {} is ignored{}", name, base::did_you_mean(name, known_variables)));
    }
}

Config& Config::set(std::string_view name, std::string_view value) {
    const auto index = base::find_parameter(name);
    if (!index) unknown_parameter("", name);
    if (name == "config" && !value.empty()) read_file(std::string(value));
    assign(*index, value, std::string(from_api));
    return *this;
}

void Config::assign(std::size_t index, std::string_view value, std::string source) {
    const auto& spec = base::parameter_table()[index];
    value = base::trim(value);
    const auto number = base::check_value(spec, value, place(spec.name, source));
    values_[index] = {std::string(value), number, std::move(source)};
}

std::string Config::text(std::string_view name) const { return values_[known(name)].text; }

std::uint64_t Config::number(std::string_view name) const {
    const auto index = known(name);
    const auto type = base::parameter_table()[index].type;
    const bool numeric =
        type == ParameterType::bytes || type == ParameterType::count || type == ParameterType::duration;
    if (!numeric) wrong_type(name, "number");
    return values_[index].number;
}

bool Config::flag(std::string_view name) const {
    const auto index = known(name);
    if (base::parameter_table()[index].type != ParameterType::flag) wrong_type(name, "flag");
    return values_[index].number != 0;
}

bool Config::is_set(std::string_view name) const { return values_[known(name)].source != from_default; }

std::vector<Parameter> Config::parameters() const {
    const auto table = base::parameter_table();
    std::vector<Parameter> rows;
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto& spec = table[i];
        const auto& value = values_[i];
        auto help = std::string(spec.help);
        if (!spec.choices.empty()) help += fmt::format(" ({})", spec.choices);
        if (const auto range = base::range_of(spec); !range.empty()) help += fmt::format(" ({})", range);
        const bool hidden = spec.type == ParameterType::secret && !value.text.empty();
        rows.push_back({std::string(spec.name), base::variable_name(spec.name), std::string(to_string(spec.type)),
                        std::string(spec.unit), std::string(spec.default_value), std::move(help),
                        hidden ? "(set)" : value.text, value.source});
    }
    return rows;
}

}  // namespace railmux

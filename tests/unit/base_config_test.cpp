#include <railmux/config.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include <railmux/error.hpp>

#include "base/parameters.hpp"
#include "base/text.hpp"

using railmux::Config;
using railmux::Error;
using railmux::ErrorCode;

namespace {

// Sets a variable for the life of the object.
class Variable {
public:
    Variable(std::string name, const std::string& value) : name_(std::move(name)) {
        ::setenv(name_.c_str(), value.c_str(), 1);
    }
    ~Variable() { ::unsetenv(name_.c_str()); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

private:
    std::string name_;
};

class File {
public:
    explicit File(const std::string& content) {
        const int fd = ::mkstemp(path_.data());
        REQUIRE(fd >= 0);
        ::close(fd);
        std::ofstream(path_) << content;
    }
    ~File() { ::unlink(path_.c_str()); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    std::string path_ = "/tmp/railmux-config-test-XXXXXX";
};

template <typename Call>
std::string config_error(Call&& call) {
    try {
        call();
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_config);
        return error.what();
    }
    return "no error";
}

railmux::Parameter row(const Config& config, std::string_view name) {
    for (const auto& parameter : config.parameters()) {
        if (parameter.name == name) return parameter;
    }
    FAIL("no row " << name);
    return {};
}

}  // namespace

TEST_CASE("every row of the table is complete, unique and has a valid default", "[config]") {
    std::set<std::string> names, variables;
    for (const auto& spec : railmux::base::parameter_table()) {
        INFO(spec.name);
        CHECK(names.insert(std::string(spec.name)).second);
        CHECK(variables.insert(railmux::base::variable_name(spec.name)).second);
        CHECK_FALSE(spec.help.empty());
        CHECK(spec.help.find('\n') == std::string_view::npos);
        CHECK((spec.type == railmux::base::ParameterType::choice) == !spec.choices.empty());
        CHECK_NOTHROW(railmux::base::check_value(spec, spec.default_value, spec.name));
    }
    CHECK(railmux::base::variable_name("tcp.interfaces") == "RAILMUX_TCP_INTERFACES");
}

TEST_CASE("values come with where they came from", "[config]") {
    const File file("# a comment\n\neager.max = 8K  # behind a value\n  policy=fixed\nfragment.size = 1M\n");
    const Variable path("RAILMUX_CONFIG", file.path());
    const Variable policy("RAILMUX_POLICY", "round_robin");
    const Variable empty("RAILMUX_TCP_PORTS", "");
    auto config = Config::load();
    config.set("fragment.size", "512K");

    CHECK(config.number("eager.max") == 8192);
    CHECK(row(config, "eager.max").source == fmt::format("file {}:3", file.path()));
    CHECK(config.text("policy") == "round_robin");  // the environment beats the file
    CHECK(row(config, "policy").source == "environment");
    CHECK(row(config, "fragment.size").source == "api");
    CHECK(row(config, "tcp.ports").source == "default");  // an empty variable is an unset one
    CHECK(row(config, "tcp.ports").value == "0");
    CHECK(config.warnings().empty());

    config.read_file(file.path());  // stays below the environment and set()
    CHECK(config.text("policy") == "round_robin");
    CHECK(config.number("fragment.size") == 524288);
}

TEST_CASE("typed reads", "[config]") {
    Config config;
    config.set("connect.timeout", "250ms").set("report", "YES").set("progress.spin", "20");
    CHECK(config.number("connect.timeout") == 250'000'000);
    CHECK(config.number("progress.spin") == 20'000);
    CHECK(config.flag("report"));
    CHECK(config.text("connect.timeout") == "250ms");
    CHECK_THROWS_AS(config.number("policy"), Error);
    CHECK_THROWS_AS(config.flag("eager.max"), Error);
    CHECK_THROWS_AS(config.text("no.such"), Error);
    const auto cure_of = [&](const char* name) {
        try {
            static_cast<void>(config.number(name));
            return std::string("no error");
        } catch (const Error& error) {
            return error.cure();
        }
    };
    CHECK(cure_of("no.such").find("railmux info --config") != std::string::npos);
    CHECK(cure_of("policy").find("railmux info --config") != std::string::npos);
}

TEST_CASE("malformed values name the place, the value and what is allowed", "[config]") {
    Config config;
    CHECK(config_error([&] { config.set("eager.max", "64Q"); }) ==
          "parameter eager.max: \"64Q\" is not a size such as 65536, 64K, 1M or 1GiB (K is 1024), from 0 to 16K");
    CHECK(config_error([&] { config.set("eager.max", "1M"); }) ==
          "parameter eager.max: \"1M\" is out of range: from 0 to 16K");
    CHECK(config_error([&] { config.set("policy", "robin"); }) ==
          "parameter policy: \"robin\" is not one of vft|wfq|weighted_round_robin|round_robin|fixed");
    CHECK(config_error([&] { config.set("job.size", "0"); }).find("from 1 to") != std::string::npos);
    CHECK(config_error([&] { config.set("tcp.ports", "9-1"); }).find("a range such as") != std::string::npos);
    CHECK(config_error([&] { config.set("rails", "eth0,,eth1"); }) == "parameter rails: selector item \"\" is empty");
    CHECK(config_error([&] { config.set("polcy", "fixed"); }) ==
          "unknown parameter \"polcy\" (did you mean \"policy\"?)");
    CHECK(config.number("eager.max") == 16384);  // a refused value changes nothing

    const Variable variable("RAILMUX_CONNECT_TIMEOUT", "soon");
    CHECK(config_error([] {
              static_cast<void>(Config::load());
          }).starts_with("RAILMUX_CONNECT_TIMEOUT: \"soon\" is not"));
}

TEST_CASE("setting `config` reads the file", "[config]") {
    const File file("eager.max = 4K\n");
    Config config;
    config.set("config", file.path());
    CHECK(config.number("eager.max") == 4096);
    CHECK(row(config, "config").value == file.path());
    CHECK(row(config, "policy").help.find("(vft|wfq|weighted_round_robin|round_robin|fixed)") != std::string::npos);
    CHECK(row(config, "eager.max").help.ends_with(" (from 0 to 16K)"));
    CHECK(row(config, "rails").help.find("from") == std::string::npos);
}

TEST_CASE("config file errors name file and line", "[config]") {
    const auto error_of = [](const std::string& content, std::string& path) {
        const File file(content);
        path = file.path();
        Config config;
        return config_error([&] { config.read_file(file.path()); });
    };
    std::string path;
    auto text = error_of("report = on\neager.max = lots\n", path);
    CHECK(text.starts_with(path + ":2: eager.max: \"lots\" is not a size"));
    text = error_of("\n\nrails\n", path);
    CHECK(text == path + ":3: \"rails\" is not `name = value`");
    text = error_of("tcp.interface = eth0\n", path);
    CHECK(text == path + ":1: unknown parameter \"tcp.interface\" (did you mean \"tcp.interfaces\"?)");
    text = error_of("config = other.conf\n", path);
    CHECK(text == path + ":1: a config file cannot name another");
    CHECK(config_error([] { Config().read_file("/nonexistent/railmux.conf"); }).find("/nonexistent/railmux.conf") !=
          std::string::npos);
}

TEST_CASE("unknown variables are warned about with their nearest match", "[config]") {
    const Variable near("RAILMUX_TCP_INTERFACE", "eth0");
    const Variable far("RAILMUX_XYZZY", "1");
    auto warnings = Config::load().warnings();
    std::sort(warnings.begin(), warnings.end());
    REQUIRE(warnings.size() == 2);
    CHECK(warnings[0] ==
          "unknown variable RAILMUX_TCP_INTERFACE is ignored (did you mean \"RAILMUX_TCP_INTERFACES\"?)");
    CHECK(warnings[1] == "unknown variable RAILMUX_XYZZY is ignored");
}

TEST_CASE("the job's key is never shown", "[config]") {
    Config config;
    CHECK(row(config, "job.key").value.empty());
    config.set("job.key", "deadbeef");
    CHECK(row(config, "job.key").value == "(set)");
    CHECK(row(config, "job.key").type == "text");
    CHECK(config.text("job.key") == "deadbeef");
}

// Which process of a job starts where and how.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>
#include <vector>

#include <railmux/error.hpp>

#include "bootstrap/launch_plan.hpp"

using namespace railmux;
using namespace railmux::bootstrap;

namespace {

const JobIdentity job{.id = "the-id", .key = "the-key", .servers = "unix:/s", .size = 4};

RunOptions options(unsigned processes, std::vector<std::string> hosts = {}) {
    RunOptions result;
    result.processes = processes;
    result.hosts = std::move(hosts);
    result.command = {"prog", "an arg", "it's"};
    return result;
}

bool has(const std::vector<std::string>& words, const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
}

bool mentions(const std::vector<std::string>& words, const std::string& text) {
    return std::any_of(words.begin(), words.end(), [&](const auto& word) { return word.find(text) != word.npos; });
}

}  // namespace

TEST_CASE("plan: ranks go to hosts in turn, as often in a row as there are slots", "[launch]") {
    using Words = std::vector<std::string>;
    CHECK(place_ranks(options(2)) == Words{"", ""});
    CHECK(place_ranks(options(5, {"a", "b"})) == Words{"a", "b", "a", "b", "a"});
    CHECK(place_ranks(options(6, {"a:2", "b:3"})) == Words{"a", "a", "b", "b", "b", "a"});
    CHECK(place_ranks(options(2, {"a:99999999999"})) == Words{"a", "a"});
    CHECK(place_ranks(options(2, {"fd00::2", "[fd00::3]:1"})) == Words{"fd00::2", "[fd00::3]"});
    for (const auto* bad : {"a:", "a:x", "a:0", "a:-1", ":3"}) {
        CAPTURE(bad);
        CHECK_THROWS_AS(place_ranks(options(2, {bad})), Error);
    }
}

TEST_CASE("plan: a launch command for each host needs hosts", "[launch]") {
    auto run = options(2);
    run.launch = "ip netns exec {host}";
    CHECK_THROWS_AS(place_ranks(run), Error);
}

TEST_CASE("plan: on this host the program itself is started, the job in its environment", "[launch]") {
    const auto plan = plan_child(options(4), job, 3, "");
    CHECK(plan.command == std::vector<std::string>{"prog", "an arg", "it's"});
    for (const auto* entry : {"RAILMUX_JOB_ID=the-id", "RAILMUX_JOB_KEY=the-key", "RAILMUX_JOB_RANK=3",
                              "RAILMUX_JOB_SIZE=4", "RAILMUX_JOB_SERVER=unix:/s"}) {
        CHECK(has(plan.environment, entry));
    }
    CHECK_FALSE(plan.by_launch_command);
    CHECK(plan_child(options(1, {"localhost"}), job, 0, "localhost").command[0] == "prog");
}

TEST_CASE("plan: behind a launch command the key goes by standard input and nowhere else", "[launch]") {
    auto run = options(2, {"a", "b"});
    run.launch = "enter  {host} as-{host}-{host}";
    const auto plan = plan_child(run, job, 1, "b");
    REQUIRE(plan.command.size() > 6);
    CHECK(std::vector(plan.command.begin(), plan.command.begin() + 3) ==
          std::vector<std::string>{"enter", "b", "as-b-b"});
    CHECK(has(plan.command, "RAILMUX_JOB_RANK=1"));
    CHECK(std::vector(plan.command.end() - 3, plan.command.end()) == run.command);
    CHECK(plan.by_launch_command);
    CHECK(plan.input == "the-key\n");
    CHECK_FALSE(mentions(plan.command, "the-key"));
    CHECK_FALSE(mentions(plan.environment, "the-key"));
    run.launch = " ";
    CHECK_THROWS_AS(plan_child(run, job, 1, "b"), Error);
}

TEST_CASE("plan: other hosts are reached by ssh, whose shell takes the words apart again", "[launch]") {
    const auto plan = plan_child(options(2, {"no-such-host"}), job, 0, "no-such-host");
    CHECK(plan.command[0] == "ssh");
    CHECK(has(plan.command, "no-such-host"));
    CHECK(has(plan.command, "'an arg'"));
    CHECK(has(plan.command, "'it'\\''s'"));
    CHECK_FALSE(mentions(plan.command, "\n"));  // some login shells stumble over it
}

TEST_CASE("plan: railmux's own variables are handed over, others by name", "[launch]") {
    ::setenv("RAILMUX_POLICY", "fixed", 1);
    ::setenv("RAILMUX_JOB_KEY", "an-outer-job's", 1);
    ::setenv("MY_SETTING", "a b", 1);
    ::setenv("MY_OTHER", "x", 1);
    auto run = options(1, {"h"});
    run.launch = "enter {host}";
    run.environment = {"MY_SETTING", "NOT_SET"};
    const auto plan = plan_child(run, job, 0, "h");
    CHECK(has(plan.command, "RAILMUX_POLICY=fixed"));
    CHECK(has(plan.command, "MY_SETTING=a b"));
    CHECK_FALSE(mentions(plan.command, "MY_OTHER"));
    CHECK_FALSE(mentions(plan.command, "NOT_SET"));
    CHECK_FALSE(mentions(plan.command, "outer"));
    for (const auto* name : {"RAILMUX_POLICY", "RAILMUX_JOB_KEY", "MY_SETTING", "MY_OTHER"}) ::unsetenv(name);
}

TEST_CASE("plan: programs are looked for as execvp does", "[launch]") {
    CHECK(find_program("sh").ends_with("/sh"));
    CHECK(find_program("/bin/sh") == "/bin/sh");
    CHECK(find_program("no-such-program-anywhere").empty());
    CHECK(find_program("/bin").empty());         // a folder
    CHECK(find_program("/etc/passwd").empty());  // not executable
}

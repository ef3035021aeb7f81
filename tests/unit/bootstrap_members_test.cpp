// `railmux run` with processes that join its job: everybody learns of everybody.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include <railmux/config.hpp>

#include "bootstrap/client.hpp"
#include "unit/bootstrap_run.hpp"

using namespace railmux;
using namespace railmux::bootstrap;
using namespace railmux::bootstrap::test;

namespace {

/// This very program as a process of a job; see the hidden test case at the end.
RunOptions members(unsigned processes) {
    RunOptions options;
    options.processes = processes;
    options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "[job-member]"};
    return options;
}

std::string system_says(const std::string& command) {
    return std::system((command + " >/dev/null 2>&1").c_str()) == 0 ? "" : command;  // NOLINT(concurrency-mt-unsafe)
}

}  // namespace

TEST_CASE("run: eight processes find each other", "[run]") {
    Run run(members(8));
    CHECK(run.finish() == 0);
    CHECK(run.wait_for("knows all 8", 8));
}

TEST_CASE("run: in other network namespaces too", "[run]") {
    const auto name = "railmux-test-" + std::to_string(::getpid());
    const auto failed =
        system_says("ip netns add " + name + "-a && ip netns add " + name + "-b && ip netns exec " + name + "-a true");
    if (!failed.empty()) {
        WARN("SKIPPED: network namespaces cannot be made here");
    } else {
        auto options = members(4);
        options.hosts = {name + "-a", name + "-b"};
        options.launch = "ip netns exec {host}";
        Run run(options);
        CHECK(run.finish() == 0);
        CHECK(run.wait_for("knows all 4", 4));
    }
    (void)system_says("ip netns del " + name + "-a; ip netns del " + name + "-b");
}

// Not a test of its own: one process of the jobs above. Hidden, so that it runs only when asked for.
TEST_CASE("joins the job, publishes its rank, learns all others", "[.][job-member]") {
    const auto job = Job::read(Config::load());
    REQUIRE(job);
    JobClient client(*job);
    const auto value = std::to_string(job->rank);
    client.publish(job->rank, std::as_bytes(std::span(value)));
    for (std::uint32_t rank = 0; rank < job->size; ++rank) client.ask(rank);
    std::map<std::uint32_t, std::string> known;
    REQUIRE(eventually([&] {
        for (const auto& [type, rank, bytes] : client.poll()) {
            known[rank] = std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        }
        return known.size() == job->size || client.lost();
    }));
    for (const auto& [rank, text] : known) CHECK(text == std::to_string(rank));
    CHECK(known.size() == job->size);
    std::printf("knows all %zu\n", known.size());
}

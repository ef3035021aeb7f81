// The files by which jobs are found: one job a name, whoever is quicker, and nobody removes another one's.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <barrier>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <railmux/error.hpp>

#include "bootstrap/job_file.hpp"
#include "scratch.hpp"

using namespace railmux;
using namespace railmux::bootstrap;

namespace {

/// Files of jobs are in the test's folder meanwhile.
class OwnFolder {
public:
    OwnFolder() {
        ::setenv("XDG_RUNTIME_DIR", railmux::test::scratch_folder().c_str(), 1);
    }                                                // NOLINT(concurrency-mt-unsafe)
    ~OwnFolder() { ::unsetenv("XDG_RUNTIME_DIR"); }  // NOLINT(concurrency-mt-unsafe)
    OwnFolder(const OwnFolder&) = delete;
    OwnFolder& operator=(const OwnFolder&) = delete;
    [[nodiscard]] static bool there() { return std::filesystem::exists(JobFile::path("demo")); }
    [[nodiscard]] static std::size_t files() {
        const auto all = std::filesystem::directory_iterator(railmux::test::scratch_folder() + "/railmux");
        return static_cast<std::size_t>(std::distance(std::filesystem::begin(all), std::filesystem::end(all)));
    }
};

JobIdentity job_of(const std::string& id) {
    return {.id = id, .key = "key of " + id, .servers = "unix:/none", .size = 1};
}

/// A launcher that was killed has left its file.
void leave_behind(const std::string& id) {
    const auto pid = ::fork();
    if (pid == 0) {
        const JobFile file("demo", job_of(id));
        ::_exit(0);
    }
    REQUIRE(::waitpid(pid, nullptr, 0) == pid);
}

}  // namespace

TEST_CASE("job file: of several launchers with one name exactly one gets it", "[job]") {
    const OwnFolder folder;
    constexpr int launchers = 4;
    const bool stale = GENERATE(false, true);
    for (int round = 0; round < 50; ++round) {
        if (stale) leave_behind("dead");
        std::barrier together(launchers);
        std::atomic<int> winners = 0;
        std::atomic<int> told = 0;
        std::atomic<int> right = 0;
        std::vector<std::thread> threads;
        for (int i = 0; i < launchers; ++i) {
            threads.emplace_back([&, i] {
                const auto own = job_of(std::to_string(i));
                std::optional<JobFile> file;
                together.arrive_and_wait();
                try {
                    file.emplace("demo", own);
                    ++winners;
                } catch (const Error& error) {
                    told += error.what() == std::string("a job named demo is running");
                }
                together.arrive_and_wait();
                if (file) right += JobFile::read("demo").id == own.id;
                together.arrive_and_wait();
            });
        }
        for (auto& thread : threads) thread.join();
        CHECK(winners == 1);
        CHECK(told == launchers - 1);
        CHECK(right == 1);
        CHECK(OwnFolder::files() == 0);
    }
}

TEST_CASE("job file: what a dead launcher left is replaced, and removed by its own guard only", "[job]") {
    const OwnFolder folder;
    leave_behind("dead");
    REQUIRE(OwnFolder::there());
    JobFile::remove_leftover("demo", "other");
    REQUIRE(OwnFolder::there());
    SECTION("by its guard") {
        JobFile::remove_leftover("demo", "dead");
        CHECK_FALSE(OwnFolder::there());
    }
    SECTION("by the next job of that name") {
        const JobFile file("demo", job_of("next"));
        JobFile::remove_leftover("demo", "dead");
        CHECK(JobFile::read("demo").id == "next");
        CHECK(OwnFolder::files() == 1);
    }
}

TEST_CASE("job file: only the own file is removed at the end", "[job]") {
    const OwnFolder folder;
    std::optional<JobFile> file(std::in_place, "demo", job_of("first"));
    std::filesystem::remove(JobFile::path("demo"));
    const JobFile other("demo", job_of("second"));
    file.reset();
    CHECK(JobFile::read("demo").id == "second");
}

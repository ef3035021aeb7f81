// `railmux run` with small shell programs: output, ends, signals, and nothing left behind.
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "scratch.hpp"
#include "unit/bootstrap_run.hpp"

using namespace railmux;
using namespace railmux::bootstrap;
using namespace railmux::bootstrap::test;

namespace {

/// A script that says "ready" and then lives until a signal ends it.
const std::string wait_forever = "echo ready; while :; do sleep 0.05; done";

/// A folder for the processes of a job, as $RENDEZVOUS, with a pipe for each of four ranks: who opens one waits until somebody
/// opens the other end.
class Rendezvous {
public:
    Rendezvous() {
        REQUIRE(::mkdtemp(folder_.data()) != nullptr);
        for (int rank = 0; rank < 4; ++rank) REQUIRE(::mkfifo(fmt::format("{}/{}", folder_, rank).c_str(), 0600) == 0);
        ::setenv("RENDEZVOUS", folder_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    }
    ~Rendezvous() {
        ::unsetenv("RENDEZVOUS");  // NOLINT(concurrency-mt-unsafe)
        std::error_code ignored;
        std::filesystem::remove_all(folder_, ignored);
    }
    Rendezvous(const Rendezvous&) = delete;
    Rendezvous& operator=(const Rendezvous&) = delete;

private:
    std::string folder_ = (std::filesystem::temp_directory_path() / "railmux-test-XXXXXX").string();
};

}  // namespace

TEST_CASE("run: eight processes, each line with its rank", "[run]") {
    Run run(script(8,
                   "for i in 1 2 3 4 5 6 7 8 9; do printf 'r%s ' $RAILMUX_JOB_RANK; printf 'of %s ' "
                   "$RAILMUX_JOB_SIZE; echo line $i; done; echo oops >&2"));
    CHECK(run.finish() == 0);
    const auto lines = run.lines();
    CHECK(lines.size() == 72);
    std::map<std::string, int> next;
    for (const auto& line : lines) {
        REQUIRE(line.size() > 4);
        const auto rank = line.substr(1, 1);
        CHECK(line == "[" + rank + "] r" + rank + " of 8 line " + std::to_string(++next[rank]));
    }
    CHECK(next.size() == 8);
    for (int rank = 0; rank < 8; ++rank)
        CHECK_THAT(run.err(), Catch::Contains("[" + std::to_string(rank) + "] oops\n"));
}

TEST_CASE("run: a line that comes in pieces is kept together, one without an end is ended", "[run]") {
    // Each has written a piece before either writes the rest.
    const Rendezvous rendezvous;
    auto options = script(2,
                          "printf 'begin '; : >$RENDEZVOUS/$((1 - RAILMUX_JOB_RANK)) & "
                          "cat $RENDEZVOUS/$RAILMUX_JOB_RANK; wait; echo end; printf last");
    SECTION("with prefixes") {
        Run run(options);
        CHECK(run.finish() == 0);
        auto lines = run.lines();
        std::sort(lines.begin(), lines.end());
        CHECK(lines == std::vector<std::string>{"[0] begin end", "[0] last", "[1] begin end", "[1] last"});
    }
    SECTION("without, what is not a line is passed on as it is") {
        options.prefix = false;
        Run run(options);
        CHECK(run.finish() == 0);
        auto text = run.out();
        CHECK(text.size() == 2 * std::string("begin end\nlast").size());
        CHECK_THAT(text, Catch::StartsWith("begin end\n") && Catch::EndsWith("last"));
    }
}

TEST_CASE("run: very long lines and much output come whole", "[run]") {
    auto options = script(2, "head -c 300000 /dev/zero | tr '\\0' x; echo; yes abcdefg | head -n 100000");
    options.prefix = false;
    Run run(options);
    CHECK(run.finish() == 0);
    CHECK(run.out().size() == 2 * (300001 + 100000 * 8));
    CHECK(static_cast<std::size_t>(std::count(run.out().begin(), run.out().end(), 'x')) == 600000);
}

TEST_CASE("run: a process that fails ends the job, and is named", "[run]") {
    // Rank 2 fails once all others are ready to be asked.
    const Rendezvous rendezvous;
    Run run(script(4,
                   "trap 'echo asked to end; exit 0' TERM; cd $RENDEZVOUS; if [ $RAILMUX_JOB_RANK = 2 ]; then "
                   "cat 0 1 3; exit 7; fi; : >$RAILMUX_JOB_RANK; " +
                       wait_forever));
    CHECK(run.finish() == 7);
    CHECK_THAT(run.err(), Catch::Contains("railmux run: rank 2 ended with exit status 7; ending the job"));
    for (const auto* rank : {"[0]", "[1]", "[3]"})
        CHECK_THAT(run.out(), Catch::Contains(std::string(rank) + " asked to end"));
    CHECK_THAT(run.out(), !Catch::Contains("[2] asked"));
}

TEST_CASE("run: a process that dies of a signal is named with host and signal", "[run]") {
    auto options = script(2, "if [ $RAILMUX_JOB_RANK = 1 ]; then kill -SEGV $$; fi; " + wait_forever);
    SECTION("on this host") {
        Run run(options);
        CHECK(run.finish() == 139);
        CHECK_THAT(run.err(), Catch::Contains("rank 1 died of signal 11 (Segmentation fault); ending the job"));
    }
    SECTION("on another") {
        options.hosts = {"host-a", "host-b"};
        options.launch = "env HOST={host}";
        Run run(options);
        CHECK(run.finish() == 139);
        CHECK_THAT(run.err(), Catch::Contains("rank 1 on host host-b died of signal 11 (Segmentation fault)"));
    }
}

TEST_CASE("run: a process that fails is started anew, under its rank, with its last words before the next one's first",
          "[run]") {
    // Each writes down that it was there; the third ends well.
    const Rendezvous rendezvous;
    auto options = script(2,
                          "[ $RAILMUX_JOB_RANK = 1 ] || exit 0; cd $RENDEZVOUS; echo >>count; n=$(wc -l <count); "
                          "echo begin $n; printf 'end %s' $n; if [ $n = 1 ]; then exit 3; fi; "
                          "if [ $n = 2 ]; then kill -KILL $$; fi");
    const std::string launch = GENERATE("", "env");
    options.launch = launch;
    SECTION("as often as it takes") {
        options.restarts = 2;
        Run run(options);
        CHECK(run.finish() == 0);
        CHECK(run.out() == "[1] begin 1\n[1] end 1\n[1] begin 2\n[1] end 2\n[1] begin 3\n[1] end 3\n");
        CHECK_THAT(run.err(), Catch::Contains("rank 1 ended with exit status 3; starting it anew (1 of 2)") &&
                                  Catch::Contains("starting it anew (2 of 2)"));
    }
    SECTION("but no more often") {
        options.restarts = 1;
        Run run(options);
        CHECK(run.finish() == 137);
        CHECK_THAT(run.err(), Catch::Contains("; ending the job"));
    }
}

TEST_CASE("run: of two launchers that ask for one rank at the same moment one gets it", "[run]") {
    ::setenv("XDG_RUNTIME_DIR", railmux::test::scratch_folder().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    auto options = script(1, wait_forever);
    options.name = "demo";
    Run first(options);
    REQUIRE(first.wait_for("ready"));
    auto further = script(1, wait_forever);
    further.join = "demo";
    Run joined(further);
    REQUIRE(joined.wait_for("ready"));  // as rank 1, and its process has not said anything to the job yet
    auto again = script(1, "exit 0");
    again.join = "demo";
    again.rank = 1;
    Run second(again);
    CHECK(second.finish() == threw);
    CHECK_THAT(second.err(), Catch::Contains("rank 1 is being started"));
    ::kill(joined.pid(), SIGTERM);
    CHECK(joined.finish() == 143);
    Run third(again);
    CHECK(third.finish() == 0);
    ::unsetenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe)
}

TEST_CASE("run: those that keep going are not ended by one that fails, which is told at the end", "[run]") {
    const Rendezvous rendezvous;
    auto options = script(3, "[ $RAILMUX_JOB_RANK != 1 ] || exit 5; sleep 0.1; echo goes on; exit $RAILMUX_JOB_RANK");
    options.keep_going = true;
    Run run(options);
    CHECK(run.finish() == 5);  // the first that failed
    CHECK_THAT(run.out(), Catch::Contains("[0] goes on") && Catch::Contains("[2] goes on"));
    CHECK_THAT(run.err(), Catch::Contains("rank 1 ended with exit status 5; the others go on"));
}

TEST_CASE("run: who does not end when asked is ended", "[run]") {
    auto options = script(2, "trap '' TERM; if [ $RAILMUX_JOB_RANK = 1 ]; then exit 3; fi; " + wait_forever);
    options.grace = std::chrono::milliseconds(200);
    const std::string launch = GENERATE("", "env");
    options.launch = launch;
    Run run(options);
    CHECK(run.finish() == 3);
}

TEST_CASE("run: signals reach all processes, here and behind a launch command", "[run]") {
    const auto [signal, name] =
        GENERATE(table<int, std::string>({{SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}}));
    const std::string launch = GENERATE("", "env");
    auto options = script(3, "trap 'echo got it; exit 0' " + name + "; " + wait_forever);
    options.launch = launch;
    Run run(options);
    REQUIRE(run.wait_for("ready", 3));
    ::kill(run.pid(), signal);
    CHECK(run.finish() == 128 + signal);
    for (int rank = 0; rank < 3; ++rank)
        CHECK_THAT(run.out(), Catch::Contains("[" + std::to_string(rank) + "] got it"));
}

TEST_CASE("run: the second interrupt kills", "[run]") {
    auto options = script(2, "trap 'echo heard' INT; " + wait_forever);
    options.grace = std::chrono::minutes(10);
    Run run(options);
    REQUIRE(run.wait_for("ready", 2));
    ::kill(run.pid(), SIGINT);
    REQUIRE(run.wait_for("heard", 2));  // or the two signals could be one
    ::kill(run.pid(), SIGINT);
    CHECK(run.finish() == 130);
}

TEST_CASE("run: what cannot start says so before anything has started", "[run]") {
    auto options = script(2, "echo started");
    SECTION("no such program") { options.command[0] = "no-such-program-anywhere"; }
    SECTION("no such launch command") { options.launch = "no-such-program-anywhere"; }
    SECTION("no program at all") { options.command.clear(); }
    SECTION("slots that are no number") { options.hosts = {"a:many"}; }
    Run run(options);
    CHECK(run.finish() == threw);
    CHECK_THAT(run.err(), Catch::Contains("cure: "));
    CHECK(run.out().empty());
}

TEST_CASE("run: other hosts find the job on a port of the given ones", "[run]") {
    const auto taken = listen_at("0");
    const auto first = taken.front().port;
    auto options = script(1, "echo $RAILMUX_JOB_SERVER");
    options.launch = "env";
    options.prefix = false;
    options.ports = {first, first};
    SECTION("the first free one of them") {
        options.hosts = {"host-a"};
        options.ports.last = static_cast<std::uint16_t>(first + 100);
        Run run(options);
        CHECK(run.finish() == 0);
        const auto port = std::stoi(run.out().substr(run.out().rfind(':') + 1));
        CHECK((port > first && port <= first + 100));
    }
    SECTION("there must be one") {
        options.hosts = {"host-a"};
        Run run(options);
        CHECK(run.finish() == threw);
        CHECK_THAT(run.err(), Catch::Contains("is in use") && Catch::Contains("cure: widen tcp.ports"));
        CHECK(run.out().empty());
    }
    SECTION("without other hosts there is none") {
        Run run(options);
        CHECK(run.finish() == 0);
        CHECK_THAT(run.out(), Catch::StartsWith("unix:") && !Catch::Contains(","));
    }
}

TEST_CASE("run: the time limit", "[run]") {
    auto options = script(2, wait_forever);
    options.timeout = std::chrono::seconds(1);
    Run run(options);
    CHECK(run.finish() == 124);
    CHECK_THAT(run.err(), Catch::Contains("not over after 1 s"));
}

TEST_CASE("run: a launcher that is killed leaves neither processes nor folder", "[run]") {
    const std::string launch = GENERATE("", "env");
    auto options = script(2, "sleep 1000 & echo folder ${RAILMUX_JOB_SERVER#unix:} pid $$ pid $!; echo ready; wait");
    options.launch = launch;
    Run run(options);
    REQUIRE(run.wait_for("ready", 2));
    std::vector<pid_t> processes;
    for (auto at = run.out().find("pid "); at != std::string::npos; at = run.out().find("pid ", at + 1)) {
        processes.push_back(std::stoi(run.out().substr(at + 4)));
    }
    REQUIRE(processes.size() == 4);
    const auto start = run.out().find("folder ") + 7;
    const auto folder =
        std::filesystem::path(run.out().substr(start, run.out().find(' ', start) - start)).parent_path();
    CHECK(std::filesystem::exists(folder));
    CHECK((std::filesystem::status(folder).permissions() & std::filesystem::perms::all) ==
          std::filesystem::perms::owner_all);
    ::kill(run.pid(), SIGKILL);
    CHECK(run.finish() == 137);
    CHECK(eventually([&] { return std::none_of(processes.begin(), processes.end(), lives); }));
    CHECK(eventually([&] { return !std::filesystem::exists(folder); }));
}

TEST_CASE("run: what a process leaves behind ends with the job", "[run]") {
    Run run(script(1, "sleep 1000 & echo pid $!"));
    CHECK(run.finish() == 0);
    CHECK(eventually([&] { return !lives(std::stoi(run.out().substr(8))); }));
}

TEST_CASE("run: a daemon that keeps the output open does not keep the job", "[run]") {
    Run run(script(1,
                   "export there=$(mktemp -u); mkfifo $there; "
                   "setsid sh -c 'echo pid $$; : >$there; exec sleep 1000' & cat $there; rm $there"));
    REQUIRE(run.wait_for("pid "));
    CHECK(run.finish() == 0);
    CHECK(lives(std::stoi(run.out().substr(8))));
    ::kill(std::stoi(run.out().substr(8)), SIGKILL);
}

TEST_CASE("run: nobody reads the output: processes learn of it as in any pipe", "[run]") {
    Run run(script(1, "exec yes"));
    REQUIRE(run.wait_for("[0] y"));
    run.close_output();
    CHECK(run.finish() == 128 + SIGPIPE);
}

TEST_CASE("run: standard input is empty", "[run]") {
    const std::string launch = GENERATE("", "env");
    auto options = script(2, "cat; echo done");
    options.launch = launch;
    Run run(options);
    CHECK(run.finish() == 0);
    CHECK(run.lines().size() == 2);
}

TEST_CASE("run: behind a launch command the job arrives, and the key shows in no process list", "[run]") {
    auto options = script(1,
                          "echo key $RAILMUX_JOB_KEY; for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done "
                          "2>/dev/null; pwd");
    options.launch = "env";
    Run run(options);
    CHECK(run.finish() == 0);
    const auto key = run.out().substr(run.out().find("key ") + 4, 32);
    CHECK(key.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(run.out().find(key, 40) == std::string::npos);
    CHECK_THAT(run.out(), Catch::EndsWith("[0] " + std::filesystem::current_path().string() + "\n"));
}

TEST_CASE("run: a launch command that keeps standard input for itself is told so", "[run]") {
    auto options = script(1, "echo started");
    auto file = (std::filesystem::temp_directory_path() / "railmux-test-XXXXXX").string();
    const int descriptor = ::mkstemp(file.data());
    REQUIRE(descriptor >= 0);
    const std::string text = "#!/bin/sh\nexec \"$@\" </dev/null\n";
    REQUIRE(::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::fchmod(descriptor, 0700);
    ::close(descriptor);
    options.launch = file;
    Run run(options);
    CHECK(run.finish() == 126);
    CHECK_THAT(run.err(), Catch::Contains("hands no standard input on"));
    CHECK(run.out().empty());
    std::filesystem::remove(file);
}

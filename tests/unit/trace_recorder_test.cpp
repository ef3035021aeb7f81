// The trace file as a process writes it.
#include <fcntl.h>
#include <sys/stat.h>
#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sstream>

#include <railmux/error.hpp>

#include "base/file_descriptor.hpp"
#include "trace/recorder.hpp"
#include "trace_made.hpp"

using namespace railmux;

namespace {

class Folder {
public:
    Folder() : path_((std::filesystem::temp_directory_path() / "railmux-test-XXXXXX").string()) {
        REQUIRE(::mkdtemp(path_.data()) != nullptr);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    [[nodiscard]] std::string file(const char* name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

void record_frame(trace::Recorder& recorder, std::uint32_t seq) {
    const trace::DecisionRecord decision{.options = 1,
                                         .type = 16,
                                         .peer = 1,
                                         .seq = seq,
                                         .time = std::uint64_t{trace::test::started} + seq,
                                         .bytes = 100};
    const trace::OptionRecord option{.link = 10, .predicted_ns = 7};
    std::memcpy(recorder.add(decision), &option, sizeof option);
}

}  // namespace

TEST_CASE("recorder: the file has everything, in order, however much it is", "[trace]") {
    const Folder folder;
    base::Logger log(base::LogLevel::off);
    constexpr std::uint32_t frames = 20'000;  // several blocks
    {
        trace::Recorder recorder(folder.file("t"), trace::test::two_rails(), log);
        recorder.add_peer(1, std::string(1000, 'x'));
        recorder.add(trace::test::link_record(10, 0));
        for (std::uint32_t seq = 0; seq < frames; ++seq) record_frame(recorder, seq);
    }
    const auto read = trace::read_file(folder.file("t"));
    CHECK(!read.cut);
    CHECK(read.name_of(1) == std::string(trace::longest_name, 'x'));
    REQUIRE(read.decisions.size() == frames);
    for (std::uint32_t seq = 0; seq < frames; ++seq) REQUIRE(read.decisions[seq].time == seq);
}

TEST_CASE("recorder: a file is emptied first, and written by one at a time", "[trace]") {
    const Folder folder;
    base::Logger log(base::LogLevel::off);
    std::optional<trace::Recorder> first(std::in_place, folder.file("t"), trace::test::two_rails(), log);
    first->add(trace::test::link_record(10, 0));
    first->flush();
    CHECK_THROWS_WITH(trace::Recorder(folder.file("t"), trace::test::two_rails(), log),
                      Catch::Matchers::Contains("is being written by another"));
    CHECK(trace::read_file(folder.file("t")).links.size() == 1);
    first.reset();
    trace::Recorder(folder.file("t"), trace::test::two_rails(), log).flush();
    CHECK(trace::read_file(folder.file("t")).links.empty());

    CHECK_THROWS_WITH(trace::Recorder(folder.file("no/t"), trace::test::two_rails(), log),
                      Catch::Matchers::Contains("cannot be written"));
    CHECK_THROWS_WITH(trace::read_file(folder.file("none")), Catch::Matchers::Contains("cannot be read"));
}

TEST_CASE("recorder: a full disk ends the trace, not the program", "[trace]") {
    base::Logger log(base::LogLevel::off);
    trace::Recorder recorder("/dev/full", trace::test::two_rails(), log);
    for (std::uint32_t seq = 0; seq < 20'000; ++seq) record_frame(recorder, seq);
}

TEST_CASE("recorder: a pipe is refused, with and without a reader, and nobody waits for one", "[trace]") {
    const Folder folder;
    base::Logger log(base::LogLevel::off);
    REQUIRE(::mkfifo(folder.file("pipe").c_str(), 0600) == 0);
    CHECK_THROWS_WITH(trace::Recorder(folder.file("pipe"), trace::test::two_rails(), log),
                      Catch::Matchers::Contains("cannot be written"));
    const base::FileDescriptor reader(::open(folder.file("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    CHECK_THROWS_WITH(trace::Recorder(folder.file("pipe"), trace::test::two_rails(), log),
                      Catch::Matchers::Contains("is a pipe"));
}

TEST_CASE("recorder: what is no trace is not read to its end, a folder not at all", "[trace]") {
    CHECK_THROWS_WITH(trace::read_file("/dev/zero"), Catch::Matchers::Contains("not a railmux trace"));
    CHECK_THROWS_WITH(trace::read_file("/"), Catch::Matchers::Contains("cannot be read"));
}

TEST_CASE("recorder: the name of the file", "[trace]") {
    CHECK(trace::expand_path("t", trace::no_rank, 42) == "t");
    CHECK(trace::expand_path("t", 3, 42) == "t.3");
    CHECK(trace::expand_path("t.%p", 3, 42) == "t.42");
    CHECK(trace::expand_path("%r/t%%", 3, 42) == "3/t%");
    CHECK(trace::expand_path("t.%r", trace::no_rank, 42) == "t.0");
    CHECK(trace::expand_path("t%%", 3, 42) == "t%.3");
    for (const char* wrong : {"t%", "%x", "%%%"}) {
        CHECK_THROWS_WITH(trace::expand_path(wrong, 3, 42), Catch::Matchers::Contains("means nothing"));
    }
}

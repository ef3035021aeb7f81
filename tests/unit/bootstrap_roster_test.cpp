// The roster of a job: values and who waits for them, who is told what of whom, and launchers that join.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "bootstrap/roster.hpp"
#include "unit/bootstrap_bytes.hpp"

using namespace railmux;
using namespace railmux::bootstrap;
using railmux::bootstrap::test::bytes;

namespace {

using Strings = std::vector<std::string>;

std::string name_of(MessageType type) {
    switch (type) {
        case MessageType::value: return "value";
        case MessageType::joined: return "joined";
        case MessageType::left: return "left";
        case MessageType::lost: return "lost";
        case MessageType::size: return "size";
        case MessageType::enrolled: return "enrolled";
        case MessageType::refused: return "refused";
        case MessageType::over: return "over";
        default: return "?";
    }
}

/// A roster and what it sends, as "to 7: joined 3 third". Values are texts; what launchers are answered has none.
class Members {
public:
    explicit Members(Roster::Options options)
        : roster(options, [this](auto to, auto type, auto id, auto value) {
              const bool texts = type != MessageType::enrolled && !value.empty();
              const std::string_view text(reinterpret_cast<const char*>(value.data()), texts ? value.size() : 0);
              sent_.push_back(fmt::format("to {}: {} {}{}{}", to, name_of(type), id, texts ? " " : "", text));
          }) {}
    /// Ranks 0 to n-1 come, as connections 10, 11, ...
    void start(std::uint32_t n) {
        for (std::uint32_t rank = 0; rank < n; ++rank) put(10 + rank, rank, fmt::format("r{}", rank));
        static_cast<void>(said());
    }
    void put(std::uint64_t from, std::uint32_t rank, const std::string& value) {
        roster.take(from, {MessageType::put, rank, bytes(value)});
    }
    void get(std::uint64_t from, std::uint32_t rank) { roster.take(from, {MessageType::get, rank, {}}); }
    void leave(std::uint64_t from, bool tell) { roster.take(from, {MessageType::leave, tell ? 1U : 0U, {}}); }
    void enroll(std::uint64_t from, std::uint32_t count) { roster.take(from, {MessageType::enroll, count, {}}); }
    void enroll_as(std::uint64_t from, std::uint32_t rank) {
        base::Writer out;
        out.write(rank);
        roster.take(from, {MessageType::enroll, 1, std::move(out).take()});
    }
    Strings said() { return std::exchange(sent_, {}); }

    Roster roster;

private:
    Strings sent_;
};

constexpr Roster::Options closed{.size = 3, .open = false};
constexpr Roster::Options open_to_all{.size = 3, .open = true};

}  // namespace

TEST_CASE("roster: values go to whoever asks, before or after; nobody waits after leaving", "[job]") {
    Members job(closed);
    job.get(1, 2);
    job.get(2, 2);
    job.get(2, 2);  // asking twice is answered once
    job.leave(1, false);
    job.put(3, 2, "x");
    CHECK(job.said() == Strings{"to 2: value 2 x"});
    job.put(3, 2, "y");
    job.get(4, 2);
    CHECK(job.said() == Strings{"to 4: value 2 y"});
    job.get(5, 1);
    job.roster.lost(5);
    job.put(6, 1, "z");
    CHECK(job.said().empty());
}

TEST_CASE("roster: only ranks of the job are kept, and a process is one of them", "[job]") {
    Members job(closed);
    job.put(1, 3, "no such rank");
    job.get(2, 3);
    job.put(1, 0, "mine");
    job.put(1, 1, "mine, too");
    job.get(2, 1);
    CHECK(job.said().empty());
    job.get(2, 0);
    CHECK(job.said() == Strings{"to 2: value 0 mine"});
}

TEST_CASE("roster: in an ordinary job nobody hears of ends, but of those that ask for it", "[job]") {
    Members job(closed);
    job.start(3);
    job.roster.lost(10);
    job.leave(11, false);
    CHECK(job.said().empty());
    job.get(12, 0);  // it may be found dead there
    CHECK(job.said() == Strings{"to 12: value 0 r0"});
    job.leave(12, true);
    CHECK(job.said().empty());  // nobody is there
    Members other(closed);
    other.start(3);
    other.leave(11, true);
    CHECK(other.said() == Strings{"to 10: left 1 r1", "to 12: left 1 r1"});
    other.get(10, 1);
    CHECK(other.said() == Strings{"to 10: left 1 r1"});
}

TEST_CASE("roster: deaths and successors are told one after the other", "[job]") {
    Members job(open_to_all);
    job.start(3);
    job.roster.lost(11);
    CHECK(job.said() == Strings{"to 10: lost 1 r1", "to 12: lost 1 r1"});
    job.get(10, 1);
    CHECK(job.said() == Strings{"to 10: lost 1 r1"});
    job.put(20, 1, "again");
    CHECK(job.said() == Strings{"to 20: size 3", "to 10: joined 1 again", "to 12: joined 1 again"});
    SECTION("a successor that is quicker than the news of the death") {
        job.put(21, 1, "third");
        CHECK(job.said() == Strings{"to 10: lost 1 again", "to 12: lost 1 again", "to 21: size 3",
                                    "to 10: joined 1 third", "to 12: joined 1 third"});
        job.roster.lost(20);  // says nothing of rank 1 any more
        CHECK(job.said().empty());
    }
    SECTION("a quiet end is told when there is a successor") {
        job.leave(20, false);
        CHECK(job.said().empty());
        job.put(21, 1, "third");
        CHECK(job.said() == Strings{"to 10: left 1 again", "to 12: left 1 again", "to 21: size 3",
                                    "to 10: joined 1 third", "to 12: joined 1 third"});
    }
}

TEST_CASE("roster: launchers get ranks beyond the highest, and all are told how many there are", "[job]") {
    Members job(open_to_all);
    job.start(2);
    job.enroll(50, 2);
    CHECK(job.said() == Strings{"to 10: size 5", "to 11: size 5", "to 50: enrolled 3"});
    job.enroll(51, 1);
    CHECK(job.said() == Strings{"to 10: size 6", "to 11: size 6", "to 50: size 6", "to 51: enrolled 5"});
    CHECK(job.roster.size() == 6);
    job.put(13, 4, "r4");
    CHECK(job.said() == Strings{"to 13: size 6", "to 10: joined 4 r4", "to 11: joined 4 r4"});
    job.put(12, 2, "r2");  // it was expected from the beginning
    CHECK(job.said() == Strings{"to 12: size 6"});
    job.roster.lost(51);
    job.roster.end();
    CHECK(job.said() == Strings{"to 50: over 0"});
    job.roster.lost(10);
    CHECK(job.said().empty());  // nobody wants to hear who dies of the end
}

TEST_CASE("roster: a rank is given away only when its process has ended", "[job]") {
    Members job(open_to_all);
    job.start(3);
    job.enroll_as(50, 1);
    CHECK(job.said() == Strings{"to 50: refused 0 rank 1 is there"});
    job.enroll_as(50, 3);
    CHECK(job.said() == Strings{"to 50: refused 0 there is no rank 3 in a job of 3"});
    const auto how = GENERATE(0, 1, 2);
    how == 0 ? job.leave(11, true) : how == 1 ? job.leave(11, false) : job.roster.lost(11);
    static_cast<void>(job.said());
    job.enroll_as(50, 1);
    CHECK(job.said() == Strings{"to 50: enrolled 1"});
    CHECK(job.roster.size() == 3);
}

TEST_CASE("roster: a rank whose process is being started is given to nobody else", "[job]") {
    Members job(open_to_all);
    job.put(10, 0, "r0");
    static_cast<void>(job.said());
    SECTION("from the beginning, until its launcher says that it ended without coming") {
        job.enroll_as(50, 1);
        CHECK(job.said() == Strings{"to 50: refused 0 rank 1 is being started"});
        job.roster.ended(Roster::own_launcher, 1);
        job.enroll_as(50, 1);
        job.enroll_as(50, 2);
        CHECK(job.said() == Strings{"to 50: enrolled 1", "to 50: refused 0 rank 2 is being started"});
    }
    SECTION("by another launcher, until it has gone") {
        job.put(11, 1, "r1");
        job.roster.lost(11);
        job.enroll_as(50, 1);
        static_cast<void>(job.said());
        job.enroll_as(51, 1);
        CHECK(job.said() == Strings{"to 51: refused 0 rank 1 is being started"});
        job.roster.lost(50);
        job.enroll_as(51, 1);
        CHECK(job.said() == Strings{"to 51: enrolled 1"});
        job.put(12, 1, "again");
        job.roster.lost(12);  // once it has come, its end counts as ever
        static_cast<void>(job.said());
        job.enroll_as(52, 1);
        CHECK(job.said() == Strings{"to 52: enrolled 1"});
    }
    SECTION("of several new ones each for itself") {
        job.enroll(50, 3);
        static_cast<void>(job.said());
        job.put(11, 4, "r4");
        job.leave(11, false);
        job.roster.take(50, {MessageType::ended, 5, {}});
        job.roster.take(51, {MessageType::ended, 3, {}});  // not its own
        static_cast<void>(job.said());
        for (const std::uint32_t rank : {3, 4, 5}) job.enroll_as(51, rank);
        CHECK(job.said() ==
              Strings{"to 51: refused 0 rank 3 is being started", "to 51: enrolled 4", "to 51: enrolled 5"});
    }
}

TEST_CASE("roster: a process that is started anew and one that joins do not get the same rank", "[job]") {
    Members job(open_to_all);
    job.start(3);
    SECTION("its launcher is first, before its end shows") {
        CHECK(job.roster.claim(Roster::own_launcher, 1).empty());
        job.put(11, 1, "its last words");
        job.roster.lost(11);
        static_cast<void>(job.said());
        job.enroll_as(50, 1);
        CHECK(job.said() == Strings{"to 50: refused 0 rank 1 is being started"});
    }
    SECTION("another one is first, and has come or not") {
        const bool came = GENERATE(false, true);
        job.roster.lost(11);
        job.enroll_as(50, 1);
        if (came) job.put(21, 1, "joined");
        CHECK(job.roster.claim(Roster::own_launcher, 1) == (came ? "rank 1 is there" : "rank 1 is being started"));
        CHECK(job.roster.claim(50, 1).empty());
    }
}

TEST_CASE("roster: who asks for what cannot be is refused", "[job]") {
    Members job(open_to_all);
    job.enroll(50, 0);
    CHECK(job.said() == Strings{"to 50: refused 0 a job of 3 cannot get 0 more"});
    job.enroll(50, Roster::most_ranks);
    CHECK(job.said() == Strings{"to 50: refused 0 a job of 3 cannot get 16777216 more"});
    job.roster.take(50, {MessageType::enroll, 1, bytes("nonsense")});
    CHECK(job.said() == Strings{"to 50: refused 0 it asks in a way that is not understood"});
    Members other(closed);
    other.enroll(50, 1);
    CHECK_THAT(other.said().at(0),
               Catch::StartsWith("to 50: refused 0 the job was not started as one that others may join"));
}

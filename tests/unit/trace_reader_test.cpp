// What is read back of a trace, and what is refused.
#include <catch2/catch.hpp>

#include <random>

#include <railmux/error.hpp>

#include "trace/analysis.hpp"
#include "trace/replay.hpp"
#include "trace_made.hpp"

using namespace railmux;
using trace::test::link_record;
using trace::test::Made;

namespace {

/// Two frames over rail 0, of which the second was sent again over rail 1.
Made small_trace() {
    Made made;
    made.add_links().add_sent({.seq = 7, .at = 0}).add_acknowledged(7, 23'000);
    made.add_sent({.seq = 8, .at = 30'000, .bytes = 50'000});
    made.add_sent({.seq = 8, .at = 90'000, .choice = 1, .bytes = 50'000, .flags = trace::decision_flag::again});
    made.add(trace::OfferRecord{.peer = 1, .message = 5, .bytes = 100'000, .time = trace::test::started + 100'000});
    made.add_sent({.seq = 9, .at = 100'000, .bytes = 60'000, .message = 5});
    made.add_sent({.seq = 10, .at = 200'000, .bytes = 40'000, .message = 5});
    return made.add_acknowledged(8, 4'100'000).add_acknowledged(9, 4'200'000).add_acknowledged(10, 4'200'000);
}

/// Whoever gets past the parser can be analysed and run again.
void use(const trace::Trace& read) {
    static_cast<void>(trace::analyse({&read, 1}));
    try {
        static_cast<void>(trace::Replay(read).run("vft"));
    } catch (const Error&) {  // there is nothing to replay
    }
}

void refuses(const Made& made, const char* why) { CHECK_THROWS_WITH(made.parsed(), Catch::Matchers::Contains(why)); }

}  // namespace

TEST_CASE("trace: what was written is read back", "[trace]") {
    const auto read = small_trace().parsed();
    CHECK(!read.cut);
    CHECK(read.header.rank == 3);
    CHECK(read.header.host == "host-a");
    CHECK(read.header.rails[1].name == "tcp:eth1");
    CHECK(read.name_of(1) == "rank 1 (host-b)");
    CHECK(read.name_of(2) == "peer 2");
    REQUIRE(read.decisions.size() == 5);
    REQUIRE(read.links.size() == 2);
    CHECK(read.links[1].cost.per_byte == sched::to_ticks(80.0));

    const auto& first = read.decisions[0];
    CHECK(first.time == 0);
    CHECK(first.peer == 1);
    CHECK(first.bytes == 1000);
    CHECK(first.recent == 0);
    CHECK(first.acknowledged);
    CHECK(first.delivered == 18'000);
    CHECK(read.rail_of(first) == 0);
    const auto options = read.options_of(first);
    REQUIRE(options.size() == 2);
    CHECK(options[0].predicted == 18'000);
    CHECK(options[0].backlog == 7);
    CHECK(options[0].claimed == 9);
    CHECK(options[1].predicted == 90'000);

    // Sent again: the last try is what was acknowledged.
    CHECK(!read.decisions[1].acknowledged);
    CHECK(read.decisions[2].again);
    CHECK(read.decisions[2].acknowledged);
    CHECK(read.rail_of(read.decisions[2]) == 1);
    REQUIRE(read.offers.size() == 1);
    CHECK(read.offers[0].bytes == 100'000);
    CHECK(read.decisions[3].message == 5);
}

TEST_CASE("trace: wherever a file ends, what stands before is read", "[trace]") {
    const auto made = small_trace();
    const auto head = Made().bytes().size();
    std::size_t whole = 0;
    for (std::size_t size = 0; size <= made.bytes().size(); ++size) {
        if (size < head) {
            CHECK_THROWS_AS(trace::parse(made.bytes().first(size)), Error);
            continue;
        }
        const auto read = trace::parse(made.bytes().first(size));
        whole += read.cut ? 0 : 1;
        use(read);
    }
    CHECK(whole == 14);  // the header and its 13 records, one after the other
}

TEST_CASE("trace: no damaged byte does harm", "[trace]") {
    std::mt19937_64 random(1);
    for (int round = 0; round < 4000; ++round) {
        const auto made = small_trace();
        std::vector<std::byte> bytes(made.bytes().begin(), made.bytes().end());
        for (auto flips = random() % 3 + 1; flips > 0; --flips) {
            auto& byte = bytes[random() % bytes.size()];
            byte = static_cast<std::byte>(random() % 2 == 0 ? random() : ~static_cast<std::uint64_t>(byte));
        }
        try {
            const auto read = trace::parse(bytes);
            std::uint64_t sum = 0;
            for (const auto& decision : read.decisions) sum += decision.bytes;
            if (sum < 100'000'000) use(read);
        } catch (const Error&) {  // refused
        }
    }
}

TEST_CASE("trace: what cannot be is refused by name", "[trace]") {
    const auto text = std::as_bytes(std::span("no trace at all"));
    CHECK_THROWS_WITH(trace::parse(text), Catch::Matchers::Contains("not a railmux trace"));
    CHECK_THROWS_WITH(trace::parse({}), Catch::Matchers::Contains("not a railmux trace"));
    auto header = trace::test::two_rails();
    header.rails.resize(65);
    refuses(Made(header), "more rails than there can be");
    header = trace::test::two_rails();
    header.started = -1;
    refuses(Made(header), "a time that cannot be");

    refuses(Made().add(link_record(10, 2)), "a rail that the header does not have");
    auto link = link_record(10, 0);
    link.latency = -1;
    refuses(Made().add(link), "a cost that cannot be");
    link.latency = trace::costliest + 1;
    refuses(Made().add(link), "a cost that cannot be");
    link = link_record(10, 0);
    link.per_byte = 0;
    refuses(Made().add(link), "takes no time for a byte");

    refuses(Made().add_sent({}), "a link that was not announced");
    refuses(Made().add(link_record(10, 0, 2)).add_sent({}), "a link that was not announced");
    refuses(Made().add_links().add_sent({.choice = 2}), "a choice that is none of the options");
    refuses(Made().add_links().add_sent({.flags = 0x80}), "an unknown flag");
    refuses(Made().add_links().add_acknowledged(1, 1, 1, 0x80), "an unknown flag");
    refuses(Made().add(trace::OfferRecord{.bytes = 1}), "a large message without a name");
    refuses(Made().add(trace::OfferRecord{.message = 1, .time = ~std::uint64_t{0} / 2}), "a time that cannot be");
    refuses(Made().add(std::array<std::byte, 8>{std::byte{99}}), "an unknown kind of record");
}

TEST_CASE("trace: names cannot speak to a terminal", "[trace]") {
    auto header = trace::test::two_rails();
    header.host = "\x1b[2Jhost";
    const auto read = Made(header).add_peer(1, "a\nb\x7f").parsed();
    CHECK(read.header.host == "?[2Jhost");
    CHECK(read.name_of(1) == "a?b?");
}

// What acknowledgements say about deliveries, and what these say about predictions.
#include <catch2/catch.hpp>

#include "trace/analysis.hpp"
#include "trace_made.hpp"

using namespace railmux;
using trace::acknowledged_flag::complete;
using trace::acknowledged_flag::held_known;
using trace::test::Made;

TEST_CASE("arrivals: of one rail the newest frame of an acknowledgement is known", "[trace]") {
    const auto read = Made()
                          .add_links()
                          .add_sent({.seq = 1, .at = 0})
                          .add_sent({.seq = 2, .at = 1000})
                          .add_acknowledged(1, 30'000)
                          .add_acknowledged(2, 30'000)
                          .parsed();
    CHECK(read.decisions[0].acknowledged);
    CHECK(!read.decisions[0].timed);  // at any time before
    CHECK(read.decisions[1].timed);
    CHECK(read.decisions[1].delivered == 25'000);
}

TEST_CASE("arrivals: over two rails nobody knows which was last", "[trace]") {
    const auto read = Made()
                          .add_links()
                          .add_sent({.seq = 1, .at = 0})
                          .add_sent({.seq = 2, .at = 1000, .choice = 1})
                          .add_acknowledged(1, 30'000)
                          .add_acknowledged(2, 30'000)
                          .parsed();
    CHECK(!read.decisions[0].timed);
    CHECK(!read.decisions[1].timed);
}

TEST_CASE("arrivals: newer frames on their way may have come in unmentioned", "[trace]") {
    const auto sent = [] {
        Made made;
        return made.add_links().add_sent({.seq = 1, .at = 0}).add_sent({.seq = 2, .at = 1000});
    };
    CHECK(!sent().add_acknowledged(1, 30'000).parsed().decisions[0].timed);
    CHECK(sent().add_acknowledged(1, 30'000, 5000, held_known | complete).parsed().decisions[0].timed);
    CHECK(
        !sent().add_acknowledged(1, 30'000, 5000, complete).parsed().decisions[0].timed);  // it lay there for too long
}

TEST_CASE("arrivals: what was sent after an acknowledgement came casts no doubt, wherever the file tells of it",
          "[trace]") {
    const auto read = Made()
                          .add_links()
                          .add_sent({.seq = 1, .at = 0})
                          .add_sent({.seq = 2, .at = 40'000})
                          .add_sent({.seq = 3, .at = 80'000})
                          .add_acknowledged(1, 30'000)
                          .add_acknowledged(2, 70'000)
                          .parsed();
    CHECK(read.decisions[0].timed);
    CHECK(read.decisions[0].delivered == 25'000);
    CHECK(read.decisions[1].timed);
    CHECK(read.decisions[1].delivered == 65'000);
    CHECK(!read.decisions[2].acknowledged);
}

TEST_CASE("arrivals: close acknowledgements leave little doubt", "[trace]") {
    const auto read = Made()
                          .add_links()
                          .add_sent({.seq = 1, .at = 0})
                          .add_sent({.seq = 2, .at = 0, .choice = 1})
                          .add_sent({.seq = 3, .at = 0})
                          .add_acknowledged(1, 95'000, 5000, held_known | complete)
                          .add_acknowledged(2, 105'000, 5000, held_known)
                          .add_acknowledged(3, 105'000, 5000, held_known)
                          .parsed();
    CHECK(read.decisions[1].timed);  // between 90 and 100 us after it was sent
    CHECK(read.decisions[1].delivered == 100'000);
}

TEST_CASE("analysis: a piece would have gone behind what was planned for the other link", "[trace]") {
    // It took 60 us. Link 10 would have taken 18, but 9 bytes of 8 ns were planned for it, or so many that it was no choice.
    const auto regret = [](std::uint32_t claimed) {
        auto sent = Made::Sent{.seq = 3, .choice = 1, .message = 5};
        sent.claimed_0 = claimed;
        const auto read = Made().add_links().add_sent(sent).add_acknowledged(3, 65'000).parsed();
        return trace::analyse({&read, 1}).back().regret_most;
    };
    CHECK(regret(9) == 42'000 - 72);
    CHECK(regret(100'000) == 0);
}

TEST_CASE("analysis: shares, errors and regret by rail", "[trace]") {
    const auto read =
        Made()
            .add_links()
            .add_sent({.seq = 1, .at = 0, .bytes = 3000})  // predicted 18 us, took 18
            .add_acknowledged(1, 23'000)
            .add_sent({.seq = 2, .at = 100'000, .bytes = 3000})  // took 36; 90 over the other rail
            .add_acknowledged(2, 141'000)
            .add_sent({.seq = 3, .at = 200'000, .choice = 1, .bytes = 2000})  // took 60; 18 over the other
            .add_acknowledged(3, 265'000)
            .parsed();
    const auto rails = trace::analyse({&read, 1});
    REQUIRE(rails.size() == 3);
    CHECK(rails[0].rail == "tcp:eth0");
    CHECK(rails[0].frames == 2);
    CHECK(rails[0].bytes == 6000);
    CHECK(rails[0].share == Approx(0.75));
    CHECK(rails[0].timed == 2);
    CHECK(rails[0].error_median == Approx(0));
    CHECK(rails[0].compared == 2);
    CHECK(rails[0].regretted == 0);
    CHECK(rails[1].rail == "tcp:eth1");
    CHECK(rails[1].error_median == Approx(0.5));
    CHECK(rails[1].regretted == 1);
    CHECK(rails[1].regret_mean_ns == Approx(42'000));
    CHECK(rails[1].regret_most == 42'000);
    CHECK(rails[2].rail == "all");
    CHECK(rails[2].frames == 3);
    CHECK(rails[2].error_median == Approx(0.5));
    CHECK(rails[2].regret_mean_ns == Approx(14'000));

    const std::array twice{read, read};
    CHECK(trace::analyse(twice)[2].frames == 6);
    CHECK(trace::analyse({}).size() == 1);
}

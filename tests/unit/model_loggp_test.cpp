// The model as a value: predictions, and its two written forms.
#include <catch2/catch.hpp>

#include <random>

#include "model/prior.hpp"
#include "unit/model_systems.hpp"

using namespace railmux;

namespace {

LogGP random_model(std::mt19937_64& random) {
    std::uniform_real_distribution<double> any(0, 1);
    std::exponential_distribution<double> time(1e-4);
    const auto linear = [&] { return Linear{Nanos(time(random)), {any(random) * 1e-3 - 1e-4}}; };
    LogGP model;
    model.ranges.resize(1 + random() % LogGP::max_ranges);
    std::uint64_t up_to = 1;
    for (auto& range : model.ranges) {
        up_to += 1 + random() % 100'000;
        range = {up_to,
                 linear(),
                 linear(),
                 linear(),
                 Nanos(time(random)),
                 {any(random)},
                 {any(random), any(random), any(random), any(random), 1}};
    }
    model.ranges.back().up_to_bytes = test::to_the_end;
    model.half_round_trip = Nanos(time(random));
    model.jitter = Nanos(time(random) / 3);
    return model;
}

}  // namespace

TEST_CASE("predictions follow the formulas", "[model]") {
    const auto model = test::systems().front().truth;
    const auto one = model.predict(1);
    CHECK(one.delivery.count() == Approx(10530 + 2 * 1270));
    CHECK(one.rail.count() == Approx(9440));
    CHECK(one.sender_cpu.count() == Approx(1270));
    CHECK(model.predict(0).delivery == one.delivery);
    CHECK(model.predict(32769).rail.count() == Approx(9440 + 32768 * 9.2));
    CHECK(model.predict(32770).rail.count() == Approx(52010 + 32769 * 4.2));
    CHECK(PerByte::at(1e9).ns == Approx(8));
    CHECK(PerByte{8}.bits_per_second() == Approx(1e9));
}

TEST_CASE("text and JSON read back exactly", "[model]") {
    std::mt19937_64 random(7);
    for (int i = 0; i < 1000; ++i) {
        const auto model = random_model(random);
        REQUIRE(valid(model));
        CHECK(loggp_from_text(to_text(model)) == model);
        CHECK(loggp_from_json(to_json(model)) == model);
    }
    for (const auto& system : test::systems()) CHECK(loggp_from_text(to_text(system.truth)) == system.truth);
    CHECK(to_text(test::systems().front().truth) ==
          "loggp 1 half_round_trip=0 jitter=0\n"
          "range up_to=32769 L=10530,0 o_s=1270,0 o_r=1270,0 g=9440 G=9.2 confidence=0,0,0,0,0\n"
          "range up_to=18446744073709551615 L=10530,0 o_s=1270,0 o_r=1270,0 g=52010 G=4.2 confidence=0,0,0,0,0\n");
}

TEST_CASE("what is no model is refused, with what is wrong", "[model]") {
    const auto good = to_text(test::systems().front().truth);
    const auto with = [&](const std::string& from, const std::string& to) {
        auto text = good;
        return text.replace(text.find(from), from.size(), to);
    };
    const auto refuses = [](const std::string& text, const std::string& why) {
        CHECK_THROWS_WITH(loggp_from_text(text), Catch::Contains(why));
    };
    refuses("", "nothing there");
    refuses("loggp 2", "version");
    refuses("hello", "loggp");
    refuses(with("g=9440", "g=nan"), "out of bounds");
    refuses(with("g=9440", "g=inf"), "out of bounds");
    refuses(with("g=9440", "g=-1"), "out of bounds");
    refuses(with("g=9440", "g=1e999"), "g is not a number");
    refuses(with("g=9440", "h=9440"), "expected g=");
    refuses(with("L=10530,0", "L=10530"), "fixed part");
    refuses(with("confidence=0,0,0,0,0", "confidence=0,0,0,0"), "five");
    refuses(with("confidence=0,0,0,0,0", "confidence=0,0,0,0,2"), "out of bounds");
    refuses(with("up_to=32769", "up_to=18446744073709551615"), "ascend");
    refuses(with("up_to=32769", "up_to=-3"), "not a number");
    refuses(good.substr(0, good.size() / 2), "not a model");
    refuses(good + "range", "expected");
    std::string many = "loggp 1 half_round_trip=0 jitter=0\n";
    for (int i = 0; i < 20; ++i) many += "range\n";
    refuses(many, "more than 16");
}

TEST_CASE("JSON that is no model is refused", "[model]") {
    for (const std::string text : {"", "{", "[]", "null", "3", R"({"format":"loggp 2"})", R"({"format":"loggp 1"})",
                                   R"({"format":"loggp 1","half_round_trip_ns":0,"jitter_ns":0,"ranges":[]})",
                                   R"({"format":"loggp 1","half_round_trip_ns":"0","jitter_ns":0,"ranges":[1]})",
                                   R"({"format":"loggp 1","half_round_trip_ns":0,"jitter_ns":0,"ranges":[1]})",
                                   R"({"format":"loggp 1","half_round_trip_ns":1e999,"jitter_ns":0,"ranges":[]})"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(loggp_from_json(text), Error);
    }
    CHECK_THROWS_WITH(loggp_from_json(std::string(100'000, '[')), Catch::Contains("nested too deep"));
}

TEST_CASE("damaged texts never do more than throw", "[model]") {
    std::mt19937_64 random(11);
    for (const auto& form : {to_text(test::systems().back().truth), to_json(test::systems().back().truth)}) {
        for (int i = 0; i < 3000; ++i) {
            auto text = form;
            for (int edits = 0; edits < 3; ++edits) text[random() % text.size()] = static_cast<char>(random());
            for (const auto read : {loggp_from_text, loggp_from_json}) {
                bool good = true;
                try {
                    good = valid(read(text));
                } catch (const Error&) {
                }
                if (!good) FAIL(text);
            }
        }
    }
}

TEST_CASE("priors are models of no confidence", "[model]") {
    for (const auto* transport : {"tcp", "verbs", "ofi", "shm", "self", "sim", "carrier pigeon"}) {
        const auto guess = model::prior(transport, 0);
        CHECK(valid(guess));
        CHECK(guess.confidence() == 0);
    }
    CHECK(model::prior("tcp", 10'000'000'000).range(1).G.bits_per_second() == Approx(1e10));
}

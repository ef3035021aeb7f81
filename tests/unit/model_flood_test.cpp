// Flood: what links sustain, on links made of arithmetic.
#include <catch2/catch.hpp>

#include <algorithm>
#include <deque>
#include <vector>

#include "model/flood.hpp"

using namespace railmux;

namespace {

/// A link that passes a burst at ten times its rate before that bites.
struct Wire {
    double bytes_per_ns;
    double burst = 0;
    std::deque<double> trains{};  // bytes left of each that is under way
};

struct World {
    std::vector<Wire> wires;
    double common = 1e9;  // bytes per ns that all of them share

    /// Floods all; what they bring, in bits per second.
    double flood() {
        model::Flood flood(std::vector<std::uint64_t>(wires.size(), 65'000));
        const auto send = [&](std::size_t i) {
            const auto train = flood.next(i);
            CHECK(train.n <= 64);
            CHECK(train.bytes <= 65'000);
            wires[i].trains.push_back(static_cast<double>(train.n) * static_cast<double>(train.bytes));
        };
        for (std::size_t i = 0; i < wires.size(); ++i) {
            for (std::uint32_t n = 0; n < model::Flood::trains; ++n) send(i);
        }
        constexpr base::Nanoseconds step = 10 * base::microsecond;
        double before = 0;
        for (base::Nanoseconds now = 0; flood.progress() < 1; now += step) {
            REQUIRE(now < 60 * base::second);
            auto left = common * step;
            for (std::size_t turn = 0; turn < wires.size(); ++turn) {
                // Each in turn first, so that they share evenly.
                const auto i = (turn + static_cast<std::size_t>(now / step)) % wires.size();
                auto& wire = wires[i];
                if (wire.trains.empty()) continue;
                auto passes = std::min(left, wire.bytes_per_ns * step * (wire.burst > 0 ? 10 : 1));
                left -= passes;
                wire.burst -= passes;
                while (!wire.trains.empty() && passes > 0) {
                    const auto part = std::min(passes, wire.trains.front());
                    passes -= part;
                    wire.trains.front() -= part;
                    if (wire.trains.front() > 0) break;
                    wire.trains.pop_front();
                    CHECK(flood.awaited(i) > 0);
                    flood.answered(i, now + step);
                    if (!flood.over()) send(i);
                }
            }
            CHECK(flood.progress() >= before);
            before = flood.progress();
            if (!flood.over()) CHECK(flood.bps() == 0);
        }
        for (std::size_t i = 0; i < wires.size(); ++i) CHECK(flood.awaited(i) == 0);
        return flood.bps();
    }
};

}  // namespace

TEST_CASE("a flood finds the rate of a link, whatever that is, behind its burst", "[model]") {
    for (const double rate : {0.000125, 0.0125, 0.125, 1.25, 12.5, 50.0}) {
        CHECK(World{{{rate}}}.flood() == Approx(8e9 * rate).epsilon(0.03));
        CHECK(World{{{rate, 256 * 1024}}}.flood() == Approx(8e9 * rate).epsilon(0.03));
    }
}

TEST_CASE("links flooded together bring their sum, or what they share", "[model]") {
    CHECK(World{{{0.125, 256 * 1024}, {0.0125, 256 * 1024}}}.flood() == Approx(1.1e9).epsilon(0.03));
    CHECK(World{{{0.125}, {0.125}, {0.05}}, 0.15}.flood() == Approx(1.2e9).epsilon(0.05));
    CHECK(World{{{1.25}, {1.25}}, 0.125}.flood() == Approx(1e9).epsilon(0.03));
}

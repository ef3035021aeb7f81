// Whether bytes leave by an interface, by a counter that may lag.
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>

#include "transports/tcp/departures.hpp"

using namespace railmux;
using transports::tcp::Departures;

namespace {

constexpr std::uint64_t per_second = 3'000'000'000;  // 25 Gbit/s

/// Floods for so long, and looks at the counter as often as the rail does; when it was found that the bytes leave elsewhere.
template <typename Counter>
std::optional<base::Nanoseconds> found_elsewhere(base::Nanoseconds time, Counter counter) {
    Departures departures;
    for (base::Nanoseconds now = 0; now < time; now += base::millisecond) {
        if (!departures.tells(now)) continue;
        const auto sent = static_cast<std::uint64_t>(now / base::millisecond) * per_second / 1000;
        if (departures.elsewhere(sent, counter(now, sent), now)) return now;
    }
    return std::nullopt;
}

}  // namespace

TEST_CASE("a counter that is brought up to date now and then does not part bytes from their interface",
          "[transports]") {
    const auto period =
        GENERATE(as<base::Nanoseconds>(), base::millisecond, base::second, 2 * base::second, 4 * base::second);
    const auto counter = [&](base::Nanoseconds now, std::uint64_t) {
        return static_cast<std::uint64_t>(now / period * period / base::millisecond) * per_second / 1000;
    };
    INFO("every " << period << " ns");
    CHECK_FALSE(found_elsewhere(60 * base::second, counter));
}

TEST_CASE("bytes that an interface never counts leave elsewhere", "[transports]") {
    const auto nothing = [](base::Nanoseconds, std::uint64_t) { return std::uint64_t{1000}; };  // others' packets
    const auto found = found_elsewhere(60 * base::second, nothing);
    REQUIRE(found);
    CHECK(*found < Departures::longest_lag + base::second);
    // Nor once it has counted for a while.
    const auto at_first = [](base::Nanoseconds, std::uint64_t sent) { return std::min(sent, 10 * per_second); };
    CHECK(found_elsewhere(60 * base::second, at_first));
}

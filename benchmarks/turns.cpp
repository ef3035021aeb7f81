// turns: configurations measured in turns by one pair of processes, so that whatever else the machine does meets them all
// alike.
//
//   turns --listen PORT VARIANT...
//   turns --connect HOST:PORT PATTERN BYTES WINDOW SECONDS VARIANT...
//
// A variant is a policy, or parameters as in "policy=vft;rails=*rail0"; both sides name the same ones, in the same order, and
// have a context for each (on PORT and the ones that follow), and one more that says whose turn it is. A turn is some 20 ms of
// one size; variants follow each other in an order that is drawn anew each time round, until the seconds are over. What is
// received is checked as `railmux pingpong` does it.
//
// PATTERN pingpong: WINDOW messages there, as many back. Prints for each variant half the time of that, in us, the median of
// each turn. PATTERN stream: messages in one direction, WINDOW under way; MB/s of each turn. As JSON, {"variants": [[...],
// ...]}: the n-th figures of all variants are of the same time round.
//
// Threads: one.
// Lifetime: the workspace outlives the contexts, which may use it to their own end.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <railmux/context.hpp>
#include <railmux/error.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "tools/benchmark.hpp"
#include "tools/driver.hpp"
#include "tools/server.hpp"
#include "tools/sizes.hpp"
#include "tools/statistics.hpp"

namespace {

using railmux::Context;
using railmux::Peer;
namespace base = railmux::base;
namespace tools = railmux::tools;

constexpr auto turn_time = 20 * base::millisecond;
constexpr auto calibration_time = 5 * base::millisecond;
constexpr std::uint64_t least_bursts = 4;  // of a turn
constexpr railmux::Tag turn_tag = 1;
constexpr std::uint32_t no_more = ~std::uint32_t{0};

[[noreturn]] void misused(std::string_view what) {
    throw railmux::Error(railmux::ErrorCode::invalid_argument, std::string(what),
                         "see the head of benchmarks/turns.cpp");
}

template <typename Number>
Number number_of(std::string_view text) {
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) misused(fmt::format("{} is no number", text));
    return value;
}

railmux::Config config_of(std::string_view variant) {
    tools::ConfigOptions options;
    if (variant.find('=') == variant.npos) options.policy = variant;
    while (options.policy.empty() && !variant.empty()) {
        const auto end = std::min(variant.find(';'), variant.size());
        options.settings.emplace_back(variant.substr(0, end));
        variant.remove_prefix(std::min(end + 1, variant.size()));
    }
    return tools::make_config(options);
}

struct Place {
    std::string host;
    std::uint16_t port = 0;
    [[nodiscard]] std::string next(std::size_t by) const {
        return (host.empty() ? "" : host + ":") + std::to_string(port + by);
    }
};

Place place_of(std::string_view text) {
    const auto colon = text.rfind(':');
    const auto port = colon == text.npos ? text : text.substr(colon + 1);
    return {std::string(text.substr(0, colon == text.npos ? 0 : colon)), number_of<std::uint16_t>(port)};
}

/// One end of everything: the contexts of the variants, and the one that says whose turn it is. Nobody scans the rails of a
/// context that has not its turn: one is busy at a time.
class End {
public:
    explicit End(std::span<char* const> variants) : turns_(config_of("fixed")) {
        for (const std::string_view variant : variants) contexts_.emplace_back(config_of(variant));
    }
    [[nodiscard]] std::size_t size() const noexcept { return contexts_.size(); }

    void serve(const Place& place) {
        turns_.listen(place.next(0));
        for (std::size_t i = 0; i < size(); ++i) contexts_[i].listen(place.next(i + 1));
        std::vector<Peer> peers;
        const auto partner = accepted(turns_);
        for (auto& context : contexts_) peers.push_back(accepted(context));
        for (;;) {
            std::array<std::byte, sizeof(std::uint32_t)> whose;
            static_cast<void>(turns_.recv(partner, turn_tag, whose));
            const auto turn = base::load<std::uint32_t>(whose.data());
            turns_.send(partner, turn_tag, {});
            if (turn >= size()) return;
            if (!tools::serve(contexts_[turn], peers[turn], workspace_)) throw_wrong();
        }
    }

    void connect(const Place& place) {
        partner_ = turns_.connect(place.next(0));
        for (std::size_t i = 0; i < size(); ++i) peers_.push_back(contexts_[i].connect(place.next(i + 1)));
    }
    /// What `measure` says of the driver of a variant, whose turn it is for so long.
    template <typename Measure>
    auto take_turn(std::size_t variant, Measure measure) {
        announce(static_cast<std::uint32_t>(variant));
        tools::Driver driver(contexts_[variant], peers_[variant], workspace_);
        auto result = measure(driver);
        driver.finish();
        return result;
    }
    void end() { announce(no_more); }

private:
    [[noreturn]] static void throw_wrong() {
        throw railmux::Error(railmux::ErrorCode::protocol, "wrong data arrived", "report this: it must never happen");
    }
    static Peer accepted(Context& context) {
        for (;;) {
            if (const auto peer = context.accept(std::chrono::hours(1))) return *peer;
        }
    }
    /// Until it is heard: nobody looks at this context afterwards, whatever becomes of its rails.
    void announce(std::uint32_t turn) {
        std::array<std::byte, sizeof turn> whose;
        base::store(whose.data(), turn);
        turns_.send(partner_, turn_tag, whose);
        static_cast<void>(turns_.recv(partner_, turn_tag, {}));
    }

    tools::Workspace workspace_;
    Context turns_;
    std::deque<Context> contexts_;
    Peer partner_;
    std::vector<Peer> peers_;
};

/// What is measured of each variant, and how many messages take a turn's time.
class Series {
public:
    Series(tools::Action action, std::uint64_t bytes, std::uint64_t window)
        : order_{.action = action, .bytes = bytes, .window = window, .buffers = window} {}

    /// Until a few milliseconds are full: how many messages fill a turn.
    [[nodiscard]] std::uint64_t calibrate(tools::Driver& driver) const {
        driver.settle();
        auto count = least_bursts * order_.window;
        for (;; count *= 2) {
            const auto elapsed = driver.measure(order_, extent(count)).elapsed;
            if (elapsed < calibration_time) continue;
            const auto fitting =
                static_cast<double>(count) * static_cast<double>(turn_time) / static_cast<double>(elapsed);
            return std::max(static_cast<std::uint64_t>(fitting), least_bursts * order_.window);
        }
    }
    [[nodiscard]] double measure(tools::Driver& driver, std::uint64_t count) const {
        const auto outcome = driver.measure(order_, extent(count));
        if (order_.action == tools::Action::pingpong) return tools::spread_of(driver.samples()).median / 2e3;
        return static_cast<double>(count * order_.bytes) / (static_cast<double>(outcome.elapsed) / 1e3);
    }

private:
    /// Before what is measured every byte is checked, which takes longer than the messages: of few, or a turn would be one half
    /// of messages with computing in between, and one without.
    [[nodiscard]] tools::Extent extent(std::uint64_t count) const {
        return {.iterations = count, .warm_up = 2 * order_.window, .warm_up_given = true};
    }
    tools::Order order_;
};

void drive(End& end, const Series& series, double seconds) {
    std::vector<std::uint64_t> counts;
    for (std::size_t i = 0; i < end.size(); ++i) {
        counts.push_back(end.take_turn(i, [&](auto& driver) { return series.calibrate(driver); }));
    }
    std::vector<std::vector<double>> figures(end.size());
    std::vector<std::size_t> order(end.size());
    std::iota(order.begin(), order.end(), 0);
    std::minstd_rand random(1);
    const auto until = base::now_ns() + static_cast<base::Nanoseconds>(seconds * 1e9);
    do {
        std::shuffle(order.begin(), order.end(), random);
        for (const auto i : order) {
            figures[i].push_back(end.take_turn(i, [&](auto& driver) { return series.measure(driver, counts[i]); }));
        }
    } while (base::now_ns() < until);
    end.end();
    fmt::print("{}\n", nlohmann::json{{"variants", figures}}.dump());
}

int run(std::span<char* const> arguments) {
    if (arguments.size() < 3) misused("too few arguments");
    const std::string_view side = arguments[1];
    const auto place = place_of(arguments[2]);
    if (side == "--listen") {
        End(arguments.subspan(3)).serve(place);
        return 0;
    }
    if (side != "--connect" || arguments.size() < 8) misused("too few arguments");
    const std::string_view pattern = arguments[3];
    if (pattern != "pingpong" && pattern != "stream") misused(fmt::format("{} is no pattern", pattern));
    const auto action = pattern == "stream" ? tools::Action::stream : tools::Action::pingpong;
    End end(arguments.subspan(7));
    end.connect(place);
    drive(end, Series(action, tools::parse_size("BYTES", arguments[4]), number_of<std::uint64_t>(arguments[5])),
          number_of<double>(arguments[6]));
    return 0;
}

}  // namespace

int main(int count, char** arguments) try {
    return run({arguments, static_cast<std::size_t>(count)});
} catch (const railmux::Error& error) {
    fmt::print(stderr, "turns: {}\n       {}\n", error.what(), error.cure());
    return 1;
}

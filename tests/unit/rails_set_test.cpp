// The rails of a context: what is said of those that do not open.
#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "captured.hpp"
#include "rails/rail_set.hpp"
#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::rails;
namespace sim = railmux::transports::sim;

namespace {

/// A host's rails, of which those but eth0 do not open as long as there is `trouble`; and what there is may be found out
/// elsewhere.
class Troubled final : public transports::Transport {
public:
    struct State {
        std::string trouble{};
        ErrorCode code = ErrorCode::system;
        int opened = 0;     // how often that was tried
        bool slow = false;  // to say what there is
    };
    Troubled(sim::Fabric& fabric, State& state) : state_(state), all_(sim::make_transport(fabric, "a")) {}
    [[nodiscard]] std::string_view name() const noexcept override { return all_->name(); }
    [[nodiscard]] std::vector<RailInfo> scan() override { return all_->scan(); }
    /// As of the time when it was begun.
    [[nodiscard]] std::optional<std::vector<RailInfo>> rescan() override {
        if (found_.empty()) found_ = all_->scan();
        if (state_.slow) return std::nullopt;
        return std::exchange(found_, {});
    }
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override {
        ++state_.opened;
        if (device.device != "eth0" && !state_.trouble.empty()) throw Error(state_.code, state_.trouble, "wait");
        return all_->open(device);
    }

private:
    State& state_;
    std::vector<RailInfo> found_;
    std::unique_ptr<transports::Transport> all_;
};

RailSet open_troubled(sim::Fabric& fabric, Troubled::State& state, base::Logger& log) {
    Transports all;
    all.push_back(std::make_unique<Troubled>(fabric, state));
    return RailSet(std::move(all), {}, log);
}

void add_rail(sim::Fabric& fabric, const char* device) {
    fabric.add_rail("a", {.device = device, .timing = sim::simple_timing(1000, 300, 300, 400, 1.0)});
}

}  // namespace

TEST_CASE("of a device that does not open each cause is told once, however often it is tried", "[rails]") {
    sim::Fabric fabric;
    for (const char* device : {"eth0", "eth1", "eth2"}) add_rail(fabric, device);
    base::Logger log;
    Troubled::State state{.trouble = "it is busy"};
    const auto said = railmux::test::captured([&] {
        auto rails = open_troubled(fabric, state, log);
        CHECK(rails.size() == 1);
        for (const char* cause : {"it is busy", "it is busy", "it is broken", "it is busy", "it is broken"}) {
            state.trouble = cause;
            rails.look_for_new();
            CHECK(rails.open_new(0));
            CHECK(rails.size() == 1);
            CHECK(std::ranges::count(rails.list(), cause, &RailInfo::reason) == 2);
        }
        state.trouble.clear();
        rails.look_for_new();
        CHECK(rails.open_new(0));
        CHECK(rails.size() == 3);
    });
    CHECK(std::ranges::count(said, '\n') == 4);
    for (const char* line : {"eth1 is left out: it is busy", "eth2 is left out: it is busy",
                             "eth1 is left out: it is broken", "eth2 is left out: it is broken"}) {
        CHECK_THAT(said, Catch::Contains(line));
    }
}

TEST_CASE("what is found out elsewhere is taken when it is there, and asked for again if there was news meanwhile",
          "[rails]") {
    sim::Fabric fabric;
    add_rail(fabric, "eth0");
    base::Logger log(base::LogLevel::off);
    Troubled::State state{.slow = true};
    auto rails = open_troubled(fabric, state, log);
    CHECK(rails.open_new(0));  // nobody has asked
    add_rail(fabric, "eth1");
    rails.look_for_new();
    CHECK_FALSE(rails.open_new(0));
    CHECK_FALSE(rails.open_new(0));
    add_rail(fabric, "eth2");
    rails.look_for_new();
    CHECK_FALSE(rails.open_new(0));
    CHECK(rails.size() == 1);
    state.slow = false;
    CHECK_FALSE(rails.open_new(0));  // the third came later
    CHECK(rails.size() == 2);
    CHECK(rails.open_new(0));
    CHECK(rails.size() == 3);
}

TEST_CASE("a device that hung when it was opened is not opened again", "[rails]") {
    sim::Fabric fabric;
    add_rail(fabric, "eth0");
    add_rail(fabric, "eth1");
    base::Logger log(base::LogLevel::off);
    Troubled::State state{.trouble = "it hangs", .code = ErrorCode::timed_out};
    auto rails = open_troubled(fabric, state, log);
    CHECK(state.opened == 2);
    rails.look_for_new();
    CHECK(rails.open_new(0));
    CHECK(state.opened == 2);
    CHECK(std::ranges::count(rails.list(), "it hangs", &RailInfo::reason) == 1);
}

TEST_CASE("the user's word on speeds reaches rails that come later, and makes no rail another one", "[rails]") {
    sim::Fabric fabric;
    const auto timing = sim::simple_timing(1000, 300, 300, 400, 1.0);
    fabric.add_rail("a", {.device = "eth0", .timing = timing, .speed_bps = 10'000'000'000});
    base::Logger log(base::LogLevel::off);
    const auto open = [&](const char* speeds) {
        Transports all;
        all.push_back(sim::make_transport(fabric, "a"));
        return RailSet(std::move(all), {.transports = {}, .rails = {}, .speeds = base::Speeds::parse(speeds)}, log);
    };
    std::uint64_t identity = 0;
    {
        const auto plain = open("");
        CHECK(plain[0].speed_bps() == 10'000'000'000);
        identity = plain[0].identity;
    }
    auto told = open("sim:eth0=1G,sim:eth*=2G");
    CHECK(told[0].speed_bps() == 2'000'000'000);
    CHECK(told.list().front().speed_bps == 2'000'000'000);
    CHECK(told[0].identity == identity);  // what was measured of it holds
    fabric.add_rail("a", {.device = "eth1", .timing = timing});
    told.look_for_new();
    CHECK(told.open_new(0));
    REQUIRE(told.size() == 2);
    CHECK(told[1].speed_bps() == 2'000'000'000);
}

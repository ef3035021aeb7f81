// The rails of a context: what is said of those that do not open.
#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

#include "captured.hpp"
#include "rails/rail_set.hpp"
#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::rails;
namespace sim = railmux::transports::sim;

namespace {

/// A host's rails, of which those that `trouble` names do not open.
class Troubled final : public transports::Transport {
public:
    Troubled(sim::Fabric& fabric, const std::string& trouble)
        : trouble_(trouble), all_(sim::make_transport(fabric, "a")) {}
    [[nodiscard]] std::string_view name() const noexcept override { return all_->name(); }
    [[nodiscard]] std::vector<RailInfo> scan() override { return all_->scan(); }
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override {
        if (device.device != "eth0" && !trouble_.empty()) throw Error(ErrorCode::system, trouble_, "wait");
        return all_->open(device);
    }

private:
    const std::string& trouble_;
    std::unique_ptr<transports::Transport> all_;
};

}  // namespace

TEST_CASE("of a device that does not open each cause is told once, however often it is tried", "[rails]") {
    sim::Fabric fabric;
    for (const char* device : {"eth0", "eth1", "eth2"}) {
        fabric.add_rail("a", {.device = device, .timing = sim::simple_timing(1000, 300, 300, 400, 1.0)});
    }
    base::Logger log;
    std::string trouble = "it is busy";
    const auto said = railmux::test::captured([&] {
        Transports all;
        all.push_back(std::make_unique<Troubled>(fabric, trouble));
        RailSet rails(std::move(all), {}, log);
        CHECK(rails.size() == 1);
        for (const char* cause : {"it is busy", "it is busy", "it is broken", "it is busy", "it is broken"}) {
            trouble = cause;
            rails.open_new(0);
            CHECK(rails.size() == 1);
            CHECK(std::ranges::count(rails.list(), cause, &RailInfo::reason) == 2);
        }
        trouble.clear();
        rails.open_new(0);
        CHECK(rails.size() == 3);
    });
    CHECK(std::ranges::count(said, '\n') == 4);
    for (const char* line : {"eth1 is left out: it is busy", "eth2 is left out: it is busy",
                             "eth1 is left out: it is broken", "eth2 is left out: it is broken"}) {
        CHECK_THAT(said, Catch::Contains(line));
    }
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
    told.open_new(0);
    REQUIRE(told.size() == 2);
    CHECK(told[1].speed_bps() == 2'000'000'000);
}

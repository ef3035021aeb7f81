#include "base/speeds.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <railmux/config.hpp>
#include <railmux/error.hpp>

using railmux::base::Speeds;

namespace {

using Words = std::vector<std::string>;

std::uint64_t told(const char* speeds, const Words& names, const Words& addresses = {}) {
    return Speeds::parse(speeds).of(names, addresses);
}

std::string refused(const char* speeds) {
    try {
        static_cast<void>(Speeds::parse(speeds));
    } catch (const railmux::Error& error) {
        CHECK(error.code() == railmux::ErrorCode::invalid_config);
        CHECK_FALSE(error.cure().empty());
        return error.what();
    }
    return "taken";
}

}  // namespace

TEST_CASE("speeds are told by name, glob, address and network, and the last one that matches counts", "[speeds]") {
    const Words eth1{"tcp:eth1", "eth1"};
    CHECK(told("", eth1) == 0);
    CHECK(told("tcp:eth1=100M", eth1) == 100'000'000);
    CHECK(told("eth1 = 2500M", eth1) == 2'500'000'000);
    CHECK(told("eth0=1G, eth1=7k", eth1) == 7'000);
    CHECK(told("eth0=1G", eth1) == 0);
    CHECK(told("tcp:*=1G", eth1) == 1'000'000'000);
    CHECK(told("all=1G", eth1) == 1'000'000'000);
    CHECK(told("10.77.0.0/16=1G", eth1, {"10.77.1.1/24"}) == 1'000'000'000);
    CHECK(told("10.77.1.1=1G", eth1, {"10.77.2.1/24"}) == 0);
    CHECK(told("tcp:*=1G,tcp:eth1=100M", eth1) == 100'000'000);
    CHECK(told("tcp:eth1=100M,tcp:*=1G", eth1) == 1'000'000'000);
    CHECK(told("a=b=1G", {"a=b"}) == 1'000'000'000);
    CHECK(told("eth1=10000G", eth1) == Speeds::most_bps);
    CHECK(told("eth1=1K", eth1) == Speeds::least_bps);
}

TEST_CASE("a malformed list of speeds names the item and the fault", "[speeds]") {
    for (const char* text : {",", "eth0=1G,", "eth0", "eth0:1G"}) {
        CHECK_THAT(refused(text), Catch::EndsWith("\" says no speed"));
    }
    CHECK(refused("=1G") == "item \"=1G\" names nothing");
    CHECK(refused("eth1=1G,^eth0=1G") == "item \"^eth0=1G\" excludes, which means nothing here");
    for (const char* text : {"eth0=", "eth0=G", "eth0=1X", "eth0=1GB", "eth0=1Gbit", "eth0=1.5G", "eth0=-1", "eth0=1 0",
                             "eth0=18446744073709551616", "eth0=99999999999999999G"}) {
        INFO(text);
        CHECK_THAT(refused(text), Catch::Contains("no speed such as 100M"));
    }
    for (const char* text : {"eth0=0", "eth0=0G", "eth0=999", "eth0=10001G"}) {
        INFO(text);
        CHECK_THAT(refused(text), Catch::EndsWith("is out of range: from 1K to 10000G"));
    }
    CHECK_THAT(refused("eth 0=1G"), Catch::Contains("has a blank"));
    CHECK_THAT(refused("10.77.0.300=1G"), Catch::Contains("is not an IPv4 or IPv6 address"));
    CHECK_THROWS_WITH(railmux::Config().set("rail.speeds", "eth0=fast"),
                      Catch::StartsWith("parameter rail.speeds: item \"eth0=fast\" has no speed"));
}

TEST_CASE("speeds of what there is not are told, but not those of globs", "[speeds]") {
    const Words there{"tcp:eth0", "eth0", "10.77.1.1"};
    CHECK(Speeds::parse("eht0=1G,eth0=1G,ib*=1G,all=1G,10.99.0.0/16=1M").unmatched(there) ==
          Words{"eht0", "10.99.0.0/16"});
    CHECK(Speeds::parse("").unmatched(there).empty());
}

TEST_CASE("random speeds are refused or lie within the limits", "[speeds]") {
    // Letters that get far into the parser more often than any byte would.
    constexpr std::string_view letters = "=,^*[]:./019eKMGx \t";
    std::mt19937 random(1);
    const Words names{"tcp:eth0", "eth0", "e", "9", "0"};
    int taken = 0;
    for (int i = 0; i < 100'000; ++i) {
        std::string text(random() % 12, '\0');
        std::ranges::generate(text, [&] {
            return random() % 16 == 0 ? static_cast<char>(random()) : letters[random() % letters.size()];
        });
        try {
            const auto speeds = Speeds::parse(text);
            const auto speed = speeds.of(names, names);
            const bool holds = speed == 0 || (speed >= Speeds::least_bps && speed <= Speeds::most_bps);
            if (!holds) FAIL(text << " says " << speed);
            static_cast<void>(speeds.unmatched(names));
            if (speed != 0) ++taken;
        } catch (const railmux::Error& error) {
            if (error.code() != railmux::ErrorCode::invalid_config) FAIL(text << ": " << error.what());
        }
    }
    CHECK(taken > 0);
}

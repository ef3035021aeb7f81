#include "base/values.hpp"

#include <catch2/catch.hpp>

#include <limits>

#include "base/text.hpp"

using namespace railmux::base;  // NOLINT: the functions under test

TEST_CASE("sizes are in powers of 1024", "[values]") {
    CHECK(parse_bytes("0") == 0u);
    CHECK(parse_bytes("65536") == 65536u);
    CHECK(parse_bytes(" 64K ") == 65536u);
    CHECK(parse_bytes("64 KiB") == 65536u);
    CHECK(parse_bytes("1m") == 1048576u);
    CHECK(parse_bytes("1GiB") == 1073741824u);
    CHECK(parse_bytes("2Ti") == 2199023255552u);
    CHECK(parse_bytes("7B") == 7u);
    CHECK(parse_bytes("16777215T") == 16777215ull << 40);
    for (const char* bad : {"", "K", "-1", "64Q", "64KB", "6 4", "1.5M", "0x10", "16777216T", "18446744073709551616"}) {
        INFO(bad);
        CHECK_FALSE(parse_bytes(bad).has_value());
    }
}

TEST_CASE("times are in nanoseconds; a plain number is in the row's unit", "[values]") {
    CHECK(parse_duration("100us", "s") == 100'000u);
    CHECK(parse_duration("2s", "us") == 2'000'000'000u);
    CHECK(parse_duration("1 ms", "us") == 1'000'000u);
    CHECK(parse_duration("3min", "us") == 180'000'000'000u);
    CHECK(parse_duration("5", "us") == 5'000u);
    CHECK(parse_duration("0", "s") == 0u);
    for (const char* bad : {"", "us", "2 seconds", "-5ms", "99999999999999s", "1.5s"}) {
        INFO(bad);
        CHECK_FALSE(parse_duration(bad, "s").has_value());
    }
}

TEST_CASE("flags, counts and ports", "[values]") {
    for (const char* yes : {"1", "yes", "On", "TRUE"}) CHECK(parse_flag(yes) == true);
    for (const char* no : {"0", "no", "Off", "false"}) CHECK(parse_flag(no) == false);
    for (const char* bad : {"", "2", "y", "enable"}) CHECK_FALSE(parse_flag(bad).has_value());

    CHECK(parse_count("12") == 12u);
    CHECK(parse_count("18446744073709551615") == std::numeric_limits<std::uint64_t>::max());
    for (const char* bad : {"", "-1", "1K", "one", "+1"}) CHECK_FALSE(parse_count(bad).has_value());

    CHECK(parse_ports("0") == PortRange{0, 0});
    CHECK(parse_ports("5000") == PortRange{5000, 5000});
    CHECK(parse_ports("5000-5100") == PortRange{5000, 5100});
    for (const char* bad : {"", "-", "5100-5000", "0-10", "5000-70000", "65536", "5000-", "http"}) {
        INFO(bad);
        CHECK_FALSE(parse_ports(bad).has_value());
    }
}

TEST_CASE("text is trimmed and split, empty parts kept", "[text]") {
    CHECK(trim(" \ta b\n") == "a b");
    CHECK(trim("  ").empty());
    CHECK(split("a, b,,", ',') == std::vector<std::string_view>{"a", "b", "", ""});
    CHECK(join(std::vector<std::string>{"a", "b"}) == "a, b");
}

TEST_CASE("the nearest known word, unless it is far-fetched", "[text]") {
    const std::vector<std::string> known{"RAILMUX_TCP_INTERFACES", "RAILMUX_RAILS", "RAILMUX_LOG"};
    CHECK(nearest("RAILMUX_TCP_INTERFACE", known) == "RAILMUX_TCP_INTERFACES");
    CHECK(nearest("RAILMUX_RIALS", known) == "RAILMUX_RAILS");
    CHECK(nearest("railmux_log", known) == "RAILMUX_LOG");
    CHECK(nearest("PATH", known).empty());
    CHECK(did_you_mean("RAILMUX_LOGG", known) == " (did you mean \"RAILMUX_LOG\"?)");
    CHECK(did_you_mean("PATH", known).empty());
    CHECK(nearest("", known).empty());
}

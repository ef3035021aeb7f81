#include "tools/sizes.hpp"

#include <catch2/catch.hpp>

#include "tools/usage.hpp"

using railmux::tools::parse_size;
using railmux::tools::parse_sizes;
using Sizes = std::vector<std::uint64_t>;

TEST_CASE("lists and doubling ranges of sizes", "[tools]") {
    CHECK(parse_sizes("8,64,4096") == Sizes{8, 64, 4096});
    CHECK(parse_sizes(" 1K , 2") == Sizes{1024, 2});
    CHECK(parse_sizes("1-16") == Sizes{1, 2, 4, 8, 16});
    CHECK(parse_sizes("0-4") == Sizes{0, 1, 2, 4});
    CHECK(parse_sizes("3-10") == Sizes{3, 6, 10});
    CHECK(parse_sizes("8-8") == Sizes{8});
    CHECK(parse_sizes("1K-4K,1") == Sizes{1024, 2048, 4096, 1});
    CHECK(parse_sizes("1-1M").size() == 21);
    CHECK(parse_sizes("5G") == Sizes{5ull << 30});
    CHECK(parse_sizes("0-1T").back() == 1ull << 40);
}

TEST_CASE("malformed sizes are named", "[tools]") {
    for (const char* text : {"", "8,,9", "x", "-", "8-", "-8", "1-2-3", "2T", "-1", "64KB"}) {
        INFO(text);
        CHECK_THROWS_AS(parse_sizes(text), railmux::tools::UsageError);
    }
    CHECK_THROWS_WITH(parse_sizes("8,16-4"), "--sizes: \"16-4\" runs backwards");
}

TEST_CASE("one size, for an option of any name", "[tools]") {
    CHECK(parse_size("--max-bytes", "0") == 0);
    CHECK(parse_size("--max-bytes", "8K") == 8192);
    CHECK(parse_size("--max-bytes", "1T") == 1ull << 40);
    for (const char* text : {"", "8,9", "1-8", "-1", "8KB", "2T"}) {
        INFO(text);
        CHECK_THROWS_AS(parse_size("--max-bytes", text), railmux::tools::UsageError);
    }
    CHECK_THROWS_WITH(parse_size("--max-bytes", "8KB"), "--max-bytes: \"8KB\" is not a size");
}

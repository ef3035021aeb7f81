// Copies, and reading without trusting a length.
#include <algorithm>
#include <array>
#include <vector>

#include <catch2/catch.hpp>

#include "base/bytes.hpp"
#include "base/pages.hpp"

using namespace railmux::base;

TEST_CASE("copy_short copies that much and no more", "[unit]") {
    std::array<std::byte, 64> from;
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
    for (std::size_t count = 0; count <= from.size(); ++count) {
        std::array<std::byte, 66> to{};
        copy_short(to.data() + 1, from.data(), count);
        CHECK(std::equal(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count), to.begin() + 1));
        CHECK(to[0] == std::byte{0});
        CHECK(std::all_of(to.begin() + static_cast<std::ptrdiff_t>(count) + 1, to.end(),
                          [](std::byte byte) { return byte == std::byte{0}; }));
    }
}

TEST_CASE("copy copies as much wherever the two places are in their pages", "[unit]") {
    constexpr std::size_t most = 5000, page = 4096;
    std::vector<std::byte> from(most);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i % 251 + 1);
    std::vector<std::byte> to(2 * page + most);
    const auto place = [&](const std::byte* at) { return reinterpret_cast<std::uintptr_t>(at) % page; };
    for (const std::size_t ahead : {0, 1, 31, 32, 63, 64, 4095}) {
        auto* at = to.data() + 1;
        while (place(at) != (place(from.data()) + ahead) % page) ++at;
        for (const std::size_t count : {0, 65, 1024, 1025, 2049, 4097, 5000}) {
            std::ranges::fill(to, std::byte{0});
            railmux::base::copy(at, from.data(), count);
            CHECK(std::equal(at, at + count, from.begin()));
            CHECK(std::count(to.begin(), to.end(), std::byte{0}) == static_cast<std::ptrdiff_t>(to.size() - count));
        }
    }
}

TEST_CASE("move_bytes copies between places that overlap", "[unit]") {
    constexpr std::size_t most = 5000;
    const std::size_t from = 3000;
    for (const std::size_t to : {0, 2999, 3000, 3001, 3031, 8000}) {
        for (const std::size_t count : {0, 1, 64, 3000, 5000}) {
            std::vector<std::byte> memory(3 * most);
            for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i % 251);
            const auto before = memory;
            move_bytes(memory.data() + to, memory.data() + from, count);
            for (std::size_t i = 0; i < memory.size(); ++i) {
                const bool inside = i >= to && i < to + count;
                if (memory[i] != before[inside ? i - to + from : i])
                    FAIL("byte " << i << " of " << count << " to " << to);
            }
        }
    }
}

TEST_CASE("Pages begin with a page", "[unit]") {
    for (const std::size_t bytes : {1, 4096, 300'000}) {
        Pages pages(bytes);
        CHECK(reinterpret_cast<std::uintptr_t>(pages.get()) % 4096 == 0);
        std::fill_n(pages.get(), bytes, std::byte{7});  // AddressSanitizer sees whether there is room
    }
}

TEST_CASE("a Reader that came to the end gives zeros and says so", "[unit]") {
    const std::array<std::byte, 6> bytes{std::byte{1}, std::byte{2}, std::byte{3},
                                         std::byte{4}, std::byte{5}, std::byte{6}};
    Reader in(bytes);
    CHECK(in.read<std::uint32_t>() == 0x04030201);
    CHECK(in.read<std::uint32_t>() == 0);
    CHECK(in.read<std::uint8_t>() == 0);
    CHECK_FALSE(in.ok());
}

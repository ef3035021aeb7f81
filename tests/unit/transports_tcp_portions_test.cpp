#include "transports/tcp/portions.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

using railmux::transports::tcp::Portions;

namespace {

/// What the kernel makes one buffer of, if nothing leaves in between, and how many calls that takes.
struct Buffers {
    explicit Buffers(std::size_t portion) : portions(portion) {}
    void send(std::size_t bytes) {
        while (bytes > 0) {
            const auto part = portions.next(bytes);
            REQUIRE(part.bytes > 0);
            REQUIRE(part.bytes <= bytes);
            portions.sent(part, part.bytes);
            sizes.back() += part.bytes;
            if (part.ends) sizes.push_back(0);
            bytes -= part.bytes;
            ++calls;
        }
    }
    Portions portions;
    std::vector<std::size_t> sizes{0};
    std::size_t calls = 0;
};

}  // namespace

TEST_CASE("what is handed over together is not cut for little, and buffers hold a portion or a quarter more", "[tcp]") {
    constexpr std::size_t portion = 11584;
    for (std::size_t bytes = 1; bytes <= portion / 4 * 3; bytes += 7) {
        CAPTURE(bytes);
        Buffers buffers(portion);
        for (int i = 0; i < 100; ++i) buffers.send(bytes);
        CHECK(buffers.calls == 100);
        CHECK(*std::ranges::max_element(buffers.sizes) <= portion + portion / 4);
        for (std::size_t i = 0; i + 1 < buffers.sizes.size(); ++i) CHECK(buffers.sizes[i] >= portion / 2);
    }
}

TEST_CASE("what is large is cut into portions", "[tcp]") {
    constexpr std::size_t portion = 11584;
    Buffers buffers(portion);
    buffers.send(64 * 1024);
    CHECK(buffers.sizes ==
          std::vector<std::size_t>{portion, portion, portion, portion, portion, 64 * 1024 - 5 * portion, 0});
    CHECK(buffers.calls == 6);
}

TEST_CASE("of what the kernel did not take all of the portion goes on where it stands", "[tcp]") {
    Portions portions(1000);
    portions.sent(portions.next(2000), 300);
    CHECK(portions.next(2000).bytes == 700);
    portions.sent(portions.next(2000), 700);
    CHECK(portions.next(2000).bytes == 1000);
    portions.sent(portions.next(1200), 1100);  // a little too long, and not taken to its end: the buffer may go on
    CHECK(portions.next(100).bytes == 100);
    CHECK(portions.next(100).ends);
    CHECK(portions.next(2000).bytes == 250);
    portions.sent(portions.next(100), 100);
    CHECK(portions.next(2000).bytes == 1000);
}

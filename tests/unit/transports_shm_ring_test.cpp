#include <catch2/catch.hpp>

#include <array>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "transports/shm/address.hpp"
#include "transports/shm/costs.hpp"
#include "transports/shm/greeting.hpp"
#include "transports/shm/link.hpp"
#include "transports/shm/ring.hpp"
#include "transports/shm/ways.hpp"

using namespace railmux;
using namespace railmux::transports::shm;

namespace {

struct Ends {
    std::unique_ptr<Block> block = std::make_unique<Block>();
    RingWriter writer;
    RingReader reader;
    explicit Ends(bool strict = false)
        : writer(block->way[0], block->side[1], strict), reader(block->way[0], block->side[1], strict) {}
};

std::byte byte_of(std::uint32_t number, std::size_t at) { return static_cast<std::byte>(number * 31 + at * 7); }

/// Piece number `number`: up to body_bytes in the slot, more in the data area.
std::uint32_t size_of(std::uint32_t number) {
    return number * 7919 % 3 == 0 ? number % 57 : number * 7919 % most_put_piece + 1;
}

bool write(RingWriter& writer, std::uint32_t number) {
    const auto size = size_of(number);
    auto* to = writer.next_body();
    if (to == nullptr) return false;
    const bool in_data = size > body_bytes;
    if (in_data) to = writer.next_data(size);
    if (to == nullptr) return false;
    for (std::size_t i = 0; i < size; ++i) to[i] = byte_of(number, i);
    writer.publish(in_data ? Kind::piece : Kind::frame, size, 0, in_data ? size : 0);
    return true;
}

/// True if it is as write() wrote it.
bool take(RingReader& reader, std::uint32_t number) {
    const auto head = reader.head();
    const auto size = size_of(number);
    const bool in_data = size > body_bytes;
    const auto* from = in_data ? reader.data(size) : reader.body();
    bool good = head.size == size && head.kind == (in_data ? Kind::piece : Kind::frame);
    for (std::size_t i = 0; i < size && good; ++i) good = from[i] == byte_of(number, i);
    if (reader.pop(in_data ? size : 0)) reader.tell();
    return good;
}

}  // namespace

TEST_CASE("a ring carries pieces of every size, over its end and many times round", "[shm][ring]") {
    Ends ends;
    std::mt19937 random(1);
    std::uint32_t written = 0, taken = 0, wrong = 0;
    while (taken < 20'000) {
        for (auto some = random() % 200; some > 0 && write(ends.writer, written); --some) ++written;
        for (auto some = random() % 200; some > 0 && ends.reader.ready(); --some, ++taken) {
            wrong += take(ends.reader, taken) ? 0 : 1;
        }
    }
    CHECK(wrong == 0);
    CHECK_FALSE(ends.writer.broken());
}

TEST_CASE("pieces in a row lie apart, each below the last, until there is no room below it", "[shm][ring]") {
    for (const std::uint32_t bytes : {1U, 64U, 65U, 300U, 1056U, 2560U, 2561U, most_piece, most_put_piece}) {
        DataPlace place;
        auto last = data_lines;
        const auto lines = lines_of(bytes);
        const auto apart = bytes > 2560 ? 0 : std::min(lines, 16U);
        for (int i = 0; i < 1000; ++i) {
            const auto at = place.of(bytes);
            CHECK(at % 2 == 0);
            CHECK(at + lines + apart <= data_lines);
            CHECK((at < last ? at + lines + apart <= last : last < lines + apart + 1));
            CHECK(place.advance_by(bytes) == (at < last ? last - at : last + data_lines - at));
            CHECK(place.advance(bytes) == (at < last ? last - at : last + data_lines - at));
            last = at;
        }
    }
}

TEST_CASE("a full ring refuses, and an empty one is not ready", "[shm][ring]") {
    Ends ends;
    CHECK_FALSE(ends.reader.ready());
    std::uint32_t count = 0;
    while (auto* body = ends.writer.next_body()) {
        *body = std::byte{1};
        ends.writer.publish(Kind::frame, 1, 0, 0);
        ++count;
    }
    CHECK(count == slots);
    for (; ends.reader.ready(); --count) static_cast<void>(ends.reader.pop(0));
    CHECK(count == 0);
    CHECK(ends.writer.next_body() == nullptr);  // it has not been told
    ends.reader.tell();
    CHECK(ends.writer.has_room(slots));
}

TEST_CASE("writer and reader on two threads", "[shm][ring]") {
    for (const bool strict : {false, true}) {
        Ends ends(strict);
        constexpr std::uint32_t count = 30'000;
        std::thread writing([&] {
            for (std::uint32_t number = 0; number < count;) {
                if (write(ends.writer, number)) {
                    ++number;
                } else {
                    std::this_thread::yield();
                }
            }
        });
        std::uint32_t wrong = 0;
        for (std::uint32_t number = 0; number < count;) {
            if (ends.reader.ready()) {
                wrong += take(ends.reader, number++) ? 0 : 1;
            } else {
                std::this_thread::yield();
            }
        }
        writing.join();
        CHECK(wrong == 0);
    }
}

TEST_CASE("a reader that claims what it cannot have taken breaks the ring, and nothing else", "[shm][ring]") {
    for (const auto claim : {std::uint64_t{3}, std::uint64_t{400} << 32, ~std::uint64_t{0}}) {
        Ends ends;
        REQUIRE(write(ends.writer, 1));
        ends.block->side[1].taken.store(claim);
        CHECK_FALSE(ends.writer.look());
        CHECK(ends.writer.broken());
    }
}

TEST_CASE("how puts are carried follows from what copying costs", "[shm][costs]") {
    const Costs usual{.copy_per_byte = 0.05, .fetch = 500, .fetch_per_byte = 0.04, .can_fetch = true};
    CHECK(choose_bulk("auto", usual).fetch_from == 5882);
    CHECK(choose_bulk("auto", usual).speed_bps == 160'000'000'000);
    const Costs fast_cache{.copy_per_byte = 0.02, .fetch = 1950, .fetch_per_byte = 0.06, .can_fetch = true};
    CHECK(choose_bulk("auto", fast_cache).fetch_from == 30000);  // its speed is none of the ring's
    const Costs slow_copies{.copy_per_byte = 0.2, .fetch = 500, .fetch_per_byte = 0.2, .can_fetch = true};
    CHECK(choose_bulk("auto", slow_copies).fetch_from == least_fetch);
    CHECK(choose_bulk("fetch", usual).fetch_from == least_fetch);
    CHECK(choose_bulk("copy", usual).fetch_from == never_fetch);
    CHECK(choose_bulk("auto", {.copy_per_byte = 0.05, .fetch = 1, .can_fetch = true}).fetch_from == least_fetch);
    CHECK(
        choose_bulk("auto", {.copy_per_byte = 0.05, .fetch = 1, .fetch_per_byte = 0.2, .can_fetch = true}).fetch_from ==
        never_fetch);
    for (const auto* wanted : {"auto", "fetch", "copy"}) {
        CHECK(choose_bulk(wanted, {.copy_per_byte = 0.05, .fetch = 1}).fetch_from == never_fetch);
    }
    CHECK(measure_costs().copy_per_byte > 0);
}

TEST_CASE("a link judges by what puts took in either way", "[shm][costs]") {
    CHECK(fetch_pays_from(1200, 0.06, 0.02) == never_fetch);  // two threads of a core
    CHECK(fetch_pays_from(1200, 0.06, 0.12) == 20'000);       // cores of an L3
    CHECK(fetch_pays_from(1200, 0.06, 1.06) == least_fetch);
    const Costs usual{.copy_per_byte = 0.01, .fetch = 1200, .fetch_per_byte = 0.06, .can_fetch = true};
    CHECK(choose_bulk("auto", usual).judge);
    CHECK_FALSE(choose_bulk("fetch", usual).judge);  // somebody knows better
    CHECK_FALSE(choose_bulk("copy", usual).judge);
    Ways ways;
    for (int i = 0; i < 9; ++i) {
        CHECK_FALSE(ways.fetch_from(1200));
        CHECK(ways.ring.add(12'000, 100'000) == (i == 8));
    }
    CHECK_FALSE(ways.fetch_from(1200));
    for (int i = 0; i < 9; ++i) static_cast<void>(ways.fetch.add(6'000, 100'000));
    CHECK(std::abs(static_cast<double>(*ways.fetch_from(1200)) - 20'000) < 10);
    for (int i = 0; i < 9; ++i) static_cast<void>(ways.ring.add(5'000, 100'000));  // they have moved
    CHECK(ways.fetch_from(1200) == never_fetch);
}

TEST_CASE("what a byte takes is the median of several", "[shm][costs]") {
    Timed timed;
    for (const auto took : {100, 300, 90'000, 200, 100, 150, 120, 80'000}) CHECK_FALSE(timed.add(took, 1000));
    CHECK_FALSE(timed.per_byte());
    CHECK(timed.add(-5, 1000));  // a call that was faster than calls are
    CHECK(std::abs(*timed.per_byte() - 0.15) < 1e-6);
}

TEST_CASE("large puts go the other way in turns until both are known, then rarely", "[shm][costs]") {
    Trying trying;
    base::Nanoseconds now = base::second;
    const auto others = [&](bool known, std::uint32_t apart, int puts, base::Nanoseconds each = base::microsecond,
                            std::uint64_t bytes = 65'536) {
        int count = 0;
        for (int i = 0; i < puts; ++i) {
            now += each;
            count += trying.other_way(known, apart, bytes, [&] { return now; }) ? 1 : 0;
        }
        return count;
    };
    CHECK(others(false, 0, 20) == 10);
    CHECK(others(true, 0, 64) == 1);  // the two ways take alike
    CHECK(others(true, 0, 640) == 10);
    CHECK(others(true, 1'000'000, 10'000) == 10);
    CHECK(others(true, 1'000'000, 40'000, base::microsecond, 262'144) == 10);  // a larger one costs more
    CHECK(others(true, 1'000'000, 800, 10 * base::millisecond) == 100);        // who sends rarely finds out, too
    CHECK(others(true, ~0U, 1'000'000) == 1);                                  // the other side may tell anything
}

TEST_CASE("the other way is tried for a two-hundredth of the time", "[shm][costs]") {
    const auto apart = [](base::Nanoseconds ring, base::Nanoseconds fetch) {
        Ways ways;
        for (int i = 0; i < 9; ++i) {
            static_cast<void>(ways.ring.add(ring, 65'536));
            static_cast<void>(ways.fetch.add(fetch - 1200, 65'536));  // as fetches are told: without the call
        }
        return ways.try_apart(1200);
    };
    const auto about = [](std::uint32_t found, base::Nanoseconds ns) {
        return std::abs(static_cast<double>(found) / static_cast<double>(ns) - 1) < 1e-3;
    };
    CHECK(about(apart(35'000, 7'000), 28 * 200 * base::microsecond));
    CHECK(about(apart(7'000, 35'000), 28 * 200 * base::microsecond));
    CHECK(about(apart(7'007'000, 7'000), 1400 * base::millisecond));
    CHECK(apart(base::second, 7'000) == ~std::uint32_t{0});
    CHECK(apart(7'000, 7'000) < 1000);
}

TEST_CASE("a rail reaches those of its node and user", "[shm]") {
    const NodeAddress ours{.host = 1, .users = 2, .user = 3, .name = 4};
    const auto judged = [&](NodeAddress other) {
        const auto parsed = NodeAddress::parse(other.encode());
        REQUIRE(parsed);
        return ours.reach(*parsed);
    };
    CHECK(judged({.host = 1, .users = 2, .user = 3, .name = 5}).reach == transports::Reach::direct);
    CHECK(judged(ours).reach == transports::Reach::never);
    CHECK(judged({.host = 7, .users = 2, .user = 3, .name = 5}).why.empty());
    CHECK(judged({.host = 1, .users = 7, .user = 3, .name = 5}).why == "it is in another user namespace of this host");
    CHECK(judged({.host = 1, .users = 2, .user = 7, .name = 5}).why == "it belongs to user 7, this is user 3");
}

TEST_CASE("a greeting is read as it was written, and nothing else is", "[shm]") {
    const std::vector<std::byte> body(100, std::byte{9});
    const Greeting sent{.kind = GreetingKind::hello, .strict = true, .mark_address = 77, .mark = 88, .body = body};
    const auto bytes = sent.encode();
    Greeting got;
    REQUIRE(parse(bytes, got) == Parsed::complete);
    CHECK(got.kind == GreetingKind::hello);
    CHECK(got.strict);
    CHECK(got.mark_address == 77);
    CHECK(got.mark == 88);
    CHECK(std::ranges::equal(got.body, body));
    for (std::size_t size = 0; size < bytes.size(); ++size) {
        CHECK(parse(std::span(bytes).first(size), got) == Parsed::malformed);
    }
    for (std::size_t at = 0; at < 16; ++at) {
        auto wrong = bytes;
        wrong[at] = std::byte{0xee};
        CHECK(parse(wrong, got) == (at == 4 || at == 5 ? Parsed::other_version : Parsed::malformed));
    }
}

TEST_CASE("what a put waits for while others are read is not its time, if it is timed at all", "[shm][ways]") {
    PutTimer timer;
    timer.pause(50);
    CHECK(timer.begun == 0);
    timer.begun = 1000;
    timer.pause(50);
    timer.pause(7);
    CHECK(timer.begun == 1057);
}

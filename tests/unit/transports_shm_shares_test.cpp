// What a process that went mad does with its share of what is copied by both.
#include <catch2/catch.hpp>

#include "shm_strangers.hpp"

using namespace shm_strangers;

namespace {

/// A victim that gets from a stranger, who has a board and nothing else.
struct Getting {
    static constexpr std::size_t size = 100'000;
    Victim victim;
    Stranger owner{victim};
    std::vector<std::byte> source = std::vector<std::byte>(size, std::byte{7});
    std::vector<std::byte> local = std::vector<std::byte>(size + 128, std::byte{0x55});

    Getting() {
        static_cast<shm::Board*>(owner.board.memory.get())->show({3, 5}, source);
        owner.say_hello();
        victim.poll(300);
        owner.made.block.get()->side[0].can_fetch = 1;
        post();
    }
    void post() {
        const Segment segment{local.data() + 64, size};
        const Work get{.op = Op::get, .link = victim.link, .segments = {&segment, 1}, .remote = {3, 5}};
        REQUIRE(victim.rail.post({&get, 1}) == 1);
    }
    [[nodiscard]] shm::Share& share() { return owner.made.block.get()->side[1].share; }
    void say(shm::Share::State state) { share().word = share().word / shm::Share::states * shm::Share::states + state; }
    [[nodiscard]] bool here(std::size_t bytes) const {
        const auto in = std::span(local).subspan(64, size);
        const auto is = [](std::byte value) { return [value](std::byte byte) { return byte == value; }; };
        return std::ranges::all_of(in.first(bytes), is(std::byte{7})) &&
               std::ranges::all_of(in.subspan(bytes), is(std::byte{0x55})) &&
               std::ranges::all_of(std::span(local).first(64), is(std::byte{0x55})) &&
               std::ranges::all_of(std::span(local).last(64), is(std::byte{0x55}));
    }
};

}  // namespace

TEST_CASE("what the other side does with its share of a get is its business only", "[shm][hostile]") {
    Getting getting;
    REQUIRE(getting.share().state() == shm::Share::open);
    REQUIRE(getting.share().bytes == Getting::size / 2);
    auto there = Getting::size;
    SECTION("nobody comes") {}
    SECTION("it cannot") { getting.say(shm::Share::failed); }
    SECTION("it speaks of another") { getting.share().word += shm::Share::states; }
    SECTION("nonsense") { getting.share().word = ~std::uint64_t{0}; }
    SECTION("it says that it has, and has not") {
        getting.say(shm::Share::done);
        there /= 2;
    }
    SECTION("it takes its time") {
        getting.say(shm::Share::taken);
        getting.victim.poll(600);
        CHECK(getting.victim.others.empty());
        getting.say(shm::Share::done);
        there /= 2;
    }
    getting.victim.poll(10);
    CHECK(getting.victim.others == std::vector{WorkStatus::ok});
    CHECK(getting.here(there));
}

TEST_CASE("a get's buffer is not given back while the other side writes its share", "[shm][hostile]") {
    Getting getting;
    auto& victim = getting.victim;
    getting.say(shm::Share::taken);
    victim.poll(10);
    victim.rail.disconnect(victim.link);
    victim.poll(600);
    CHECK(victim.done + victim.down + victim.others.size() == 0);
    SECTION("until it has stopped") { getting.say(shm::Share::done); }
    SECTION("until it is gone") { getting.owner.socket.reset(); }
    victim.poll(300);
    CHECK(victim.done == 1);
    CHECK(victim.down == 1);
    CHECK(getting.here(Getting::size / 2));
}

TEST_CASE("who ends a link takes back the shares that nobody has come for", "[shm][hostile]") {
    Getting getting;
    getting.victim.rail.disconnect(getting.victim.link);
    CHECK(getting.share().state() == shm::Share::none);
    getting.victim.poll(300);
    CHECK(getting.victim.done == 1);
    CHECK(getting.victim.down == 1);
    CHECK(getting.here(0));
}

TEST_CASE("what is dropped from a board while it is read counts as not read", "[shm][hostile]") {
    Getting getting;
    auto& board = *static_cast<shm::Board*>(getting.owner.board.memory.get());
    getting.say(shm::Share::taken);
    getting.victim.poll(10);
    SECTION("by now") { board.hide({3, 5}); }
    SECTION("by now, and another one is in its place") { board.show({3, 6}, getting.source); }
    getting.say(shm::Share::failed);
    getting.victim.poll(10);
    CHECK(getting.victim.others == std::vector{WorkStatus::access_denied});
    CHECK(getting.here(Getting::size / 2));
}

TEST_CASE("a share is copied from where its key allows only", "[shm][hostile]") {
    Victim victim;
    std::vector<std::byte> open(50'000, std::byte{7}), room(300'000, std::byte{0x55});
    const auto source = victim.rail.add_region(open, Access::remote_read).take();
    Stranger asking(victim);
    asking.say_hello();
    victim.poll(300);
    REQUIRE(victim.up == 1);
    auto& share = asking.made.block.get()->side[0].share;
    std::uint64_t number = 0;
    const auto ask = [&](const RegionKey& key, std::uint64_t offset, std::uint64_t bytes, const std::byte* to) {
        share.key_id = key.id;
        share.key_secret = key.secret;
        share.offset = offset;
        share.bytes = bytes;
        share.address = reinterpret_cast<std::uintptr_t>(to);
        share.word = ++number * shm::Share::states + shm::Share::open;
        victim.poll(10);
        return share.state();
    };
    const auto key = source.key;
    CHECK(ask({key.id, key.secret + 1}, 0, 1000, room.data()) == shm::Share::open);
    CHECK(ask({key.id + 1000, key.secret}, 0, 1000, room.data()) == shm::Share::open);
    CHECK(ask(victim.region.key, 0, 1000, room.data()) == shm::Share::open);  // to be written only
    CHECK(ask(key, 49'001, 1000, room.data()) == shm::Share::open);
    CHECK(ask(key, ~std::uint64_t{0} - 500, 1000, room.data()) == shm::Share::open);
    CHECK(ask(key, 0, 0, room.data()) == shm::Share::open);
    CHECK(ask(key, 0, ~std::uint64_t{0}, room.data()) == shm::Share::open);
    CHECK(std::ranges::all_of(room, [](auto byte) { return byte == std::byte{0x55}; }));
    CHECK(ask(key, 0, 1000, nullptr) == shm::Share::failed);
    CHECK(ask(key, 100, 1000, room.data()) == shm::Share::done);
    CHECK(std::ranges::count(room, std::byte{7}) == 1000);
    victim.rail.drop_region(source);
    CHECK(ask(key, 100, 1000, room.data() + 1000) == shm::Share::open);
    CHECK(std::ranges::count(room, std::byte{7}) == 1000);
    CHECK(victim.down == 0);
}

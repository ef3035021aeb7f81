// Whether anything can be slept through: every order of the steps of waking.hpp, with the store buffers of the processors.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <tuple>
#include <vector>

namespace {

struct Protocol {
    bool sender_fence = false;   // strict
    bool fence_for_all = false;  // membarrier by the sleeper
    bool second_look = true;
};

constexpr int messages = 3;

/// Memory words, of which each process sees its own stores at once and the others' when they leave their buffer.
enum Word : std::uint8_t { full, sleep_word, words };

struct Store {
    Word word;
    std::uint8_t value;
    auto operator<=>(const Store&) const = default;
};

struct Processor {
    std::vector<Store> buffer;
    std::uint8_t at = 0;     // step
    std::uint8_t count = 0;  // messages sent, or taken
    auto operator<=>(const Processor&) const = default;
};

struct World {
    std::array<std::uint8_t, words> memory{};  // full: slots written so far
    bool rung = false;
    Processor sender;
    Processor sleeper;
    auto operator<=>(const World&) const = default;
};

std::uint8_t load(const World& world, const Processor& who, Word word) {
    auto value = world.memory[word];
    for (const auto& store : who.buffer) {
        if (store.word == word) value = store.value;
    }
    return value;
}

void drain_one(World& world, Processor& who) {
    world.memory[who.buffer.front().word] = who.buffer.front().value;
    who.buffer.erase(who.buffer.begin());
}

void drain(World& world, Processor& who) {
    while (!who.buffer.empty()) drain_one(world, who);
}

/// One step of the sender: write a slot, fence, look, take the word back, ring. False: it is through.
bool step_sender(World& world, const Protocol& protocol) {
    auto& me = world.sender;
    switch (me.at) {
        case 0:
            if (me.count == messages) return false;
            me.buffer.push_back({full, ++me.count});
            if (protocol.sender_fence) drain(world, me);
            me.at = 1;
            return true;
        case 1: me.at = load(world, me, sleep_word) != 0 ? 2 : 0; return true;
        case 2:
            me.buffer.push_back({sleep_word, 0});
            me.at = 3;
            return true;
        default:  // the eventfd has a lock, which its reader takes, too: what was stored before is seen
            drain(world, me);
            world.rung = true;
            me.at = 0;
            return true;
    }
}

/// One step of the sleeper: poll until nothing is there, say so, fence, look again, sleep. False: it sleeps, or is through.
bool step_sleeper(World& world, const Protocol& protocol) {
    auto& me = world.sleeper;
    switch (me.at) {
        case 0:  // poll
            if (me.count == messages) return false;
            if (load(world, me, full) != me.count) {
                ++me.count;
            } else {
                me.at = 1;
            }
            return true;
        case 1:
            me.buffer.push_back({sleep_word, 1});
            drain(world, me);  // a sequentially consistent store
            me.at = 2;
            return true;
        case 2:
            if (protocol.fence_for_all) drain(world, world.sender);
            me.at = 3;
            return true;
        case 3: me.at = protocol.second_look && load(world, me, full) != me.count ? 5 : 4; return true;
        case 4:
            if (!world.rung) return false;
            me.at = 5;
            return true;
        default:  // awake: as Rail::rise, and the bell is read
            me.buffer.push_back({sleep_word, 0});
            world.rung = false;
            me.at = 0;
            return true;
    }
}

struct Outcomes {
    std::size_t worlds = 0;
    bool slept_through = false;
};

Outcomes try_everything(const Protocol& protocol) {
    std::set<World> seen;
    std::vector<World> open{World{}};
    Outcomes outcome;
    while (!open.empty()) {
        const auto world = open.back();
        open.pop_back();
        if (!seen.insert(world).second) continue;
        bool moved = false;
        const auto next = [&](auto step) {
            auto copy = world;
            if (!step(copy)) return;
            moved = true;
            open.push_back(std::move(copy));
        };
        next([&](World& w) { return step_sender(w, protocol); });
        next([&](World& w) { return step_sleeper(w, protocol); });
        for (auto who : {&World::sender, &World::sleeper}) {
            next([&](World& w) {
                if ((w.*who).buffer.empty()) return false;
                drain_one(w, w.*who);
                return true;
            });
        }
        if (!moved && world.sleeper.count != messages) outcome.slept_through = true;
    }
    outcome.worlds = seen.size();
    return outcome;
}

}  // namespace

TEST_CASE("no order of the steps loses a wake-up", "[shm][waking]") {
    const auto asymmetric = try_everything({.fence_for_all = true});
    CHECK_FALSE(asymmetric.slept_through);
    CHECK(asymmetric.worlds > 500);
    const auto strict = try_everything({.sender_fence = true});
    CHECK_FALSE(strict.slept_through);
}

TEST_CASE("what the steps are for: without one of them a wake-up is lost", "[shm][waking]") {
    CHECK(try_everything({}).slept_through);
    CHECK(try_everything({.fence_for_all = true, .second_look = false}).slept_through);
    CHECK(try_everything({.sender_fence = true, .second_look = false}).slept_through);
}

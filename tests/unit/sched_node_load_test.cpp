#include <catch2/catch.hpp>

#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "sched/node_load.hpp"

using namespace railmux;
using sched::LoadTable;
using sched::NodeLoad;

namespace {

constexpr auto eth0 = std::uint64_t{0xE0};
constexpr auto eth1 = std::uint64_t{0xE1};

bool all_alive(std::uint64_t) noexcept { return true; }
bool none_alive(std::uint64_t) noexcept { return false; }

/// A process with a rail for each device.
struct Process {
    Process(LoadTable& table, std::uint64_t owner, std::vector<std::uint64_t> devices,
            NodeLoad::Alive alive = &all_alive)
        : load(devices.size()), backlog(devices.size(), 0) {
        load.join(table, owner, alive);
        for (std::uint32_t rail = 0; rail < devices.size(); ++rail)
            has_lines = load.share(rail, devices[rail]) && has_lines;
        load.look(0);
    }
    void send(std::uint32_t rail, std::uint64_t bytes, base::Nanoseconds now) {
        backlog[rail] += bytes;
        load.sent(rail, bytes, now);
    }
    void acknowledged(std::uint32_t rail, std::uint64_t bytes, base::Nanoseconds now) {
        backlog[rail] -= bytes;
        load.left(rail, backlog[rail], now);
    }
    std::uint64_t sees(std::uint32_t rail, base::Nanoseconds now) {
        load.look(now);
        return load.others(rail).backlog;
    }

    NodeLoad load;
    std::vector<std::uint64_t> backlog;
    bool has_lines = true;
};

std::size_t lines_of(const LoadTable& table, std::uint64_t owner) {
    return static_cast<std::size_t>(std::count_if(table.lines.begin(), table.lines.end(),
                                                  [&](const auto& line) { return line.owner.load() == owner; }));
}

}  // namespace

TEST_CASE("a process sees what the others have on its rails, and not its own", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    Process a(*table, 1, {eth0, eth1});
    Process b(*table, 2, {eth1, eth0});  // the same devices under other numbers
    Process c(*table, 3, {eth1});
    base::Nanoseconds now = base::millisecond;
    a.send(0, 1000, now);
    b.send(0, 300, now);
    c.send(0, 40, now);
    CHECK(a.sees(0, now) == 0);
    CHECK(a.sees(1, now) == 340);
    CHECK(b.sees(1, now) == 1000);
    CHECK(b.sees(0, now) == 40);
    CHECK(c.sees(0, now) == 300);

    now += base::millisecond;
    a.acknowledged(0, 600, now);
    CHECK(b.sees(1, now) == 400);
    CHECK(b.load.others(1).gone == 600);
    CHECK(b.load.take_arrivals(1) == 400);  // the rest of the thousand is off the rail
    CHECK(b.load.take_arrivals(1) == 0);
}

TEST_CASE("a process that leaves leaves nothing", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    Process a(*table, 1, {eth0});
    {
        Process b(*table, 2, {eth0});
        b.send(0, 1000, base::millisecond);
        CHECK(a.sees(0, base::millisecond) == 1000);
    }
    CHECK(a.sees(0, 2 * base::millisecond) == 0);
    CHECK(lines_of(*table, 2) == 0);
}

TEST_CASE("who dies is not counted for longer than 20 ms", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    Process a(*table, 1, {eth0});
    Process dead(*table, 2, {eth0});
    base::Nanoseconds now = base::second;
    CHECK(a.sees(0, now) == 0);
    dead.send(0, 1'000'000, now);
    for (const auto end = now + 20 * base::millisecond; now < end; now += base::millisecond) a.load.look(now);
    CHECK(a.sees(0, now + 10 * base::millisecond) == 0);
}

TEST_CASE("what has not changed since the rail had time for all that is on it is there no longer", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    Process a(*table, 1, {eth0});
    Process computes(*table, 2, {eth0});
    Process third(*table, 3, {eth0});
    std::vector<sched::Pace> paces(1);
    const bool known = GENERATE(true, false);
    const base::Nanoseconds per_byte = known ? 4 * 8 : 1000;  // if nobody knows it
    if (known) paces.front().measured(sched::to_ticks(base::Nanoseconds{8}), 0);
    const auto sees = [&](base::Nanoseconds now) {
        a.load.look(now, paces);
        return a.load.others(0).backlog;
    };
    const base::Nanoseconds sent = base::millisecond;
    std::uint64_t all = 1000;
    computes.send(0, 1000, sent - GENERATE(0, base::millisecond / 2));  // it was charged late
    SECTION("alone") {}
    SECTION("beside what is ours") {
        all += 2000;
        paces.front().sent(2000, sent);
    }
    SECTION("beside a third one's") {
        all += 3000;
        third.send(0, 3000, sent);
    }
    const auto theirs = all - paces.front().backlog();
    CHECK(sees(sent) == theirs);
    const auto carried = sent + sched::acknowledged_within + static_cast<base::Nanoseconds>(all) * per_byte;
    CHECK(sees(carried - 10 * base::microsecond) == theirs);
    CHECK(sees(carried + 10 * base::microsecond) == 0);
    computes.send(0, 500, carried + 20 * base::microsecond);  // what was there before may be so still
    CHECK(sees(carried + 40 * base::microsecond) >= 1500);
}

TEST_CASE("who has not looked for long counts nothing that is older than a second", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    Process a(*table, 1, {eth0});
    Process dead(*table, 2, {eth0});
    dead.send(0, 1000, base::millisecond);
    SECTION("before") { CHECK(a.sees(0, base::second) == 1000); }
    SECTION("after") { CHECK(a.sees(0, base::second + 2 * base::millisecond) == 0); }
}

TEST_CASE("a backlog that does not move is not what keeps a rail busy", "[sched][node]") {
    // Its peer takes 100 kB in 10 ms although it has 1 MB on the rail: the rest waits elsewhere.
    const auto table = std::make_unique<LoadTable>();
    Process a(*table, 1, {eth0});
    Process slow(*table, 2, {eth0});
    base::Nanoseconds now = base::millisecond;
    slow.send(0, 1'000'000, now);
    CHECK(a.sees(0, now) == 1'000'000);
    for (int i = 0; i < 100; ++i) {
        now += base::millisecond;
        slow.acknowledged(0, 10'000, now);
        slow.send(0, 10'000, now);
        a.load.look(now);
    }
    const auto counted = a.load.others(0).backlog;
    CHECK(counted >= 2 * 100'000);
    CHECK(counted <= 2 * 220'000);
}

TEST_CASE("lines of the dead are taken over", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    for (std::uint64_t i = 0; i < table->lines.size(); ++i) {
        table->lines[i].owner = 1000 + i;
        table->lines[i].rail = eth0;
        table->lines[i].sent = 1'000'000;
    }
    SECTION("alive") { CHECK_FALSE(Process(*table, 1, {eth0}).has_lines); }
    SECTION("dead") {
        Process a(*table, 1, {eth0, eth1}, &none_alive);
        CHECK(a.has_lines);
        CHECK(lines_of(*table, 1) == 2);
        CHECK(a.sees(0, 3 * base::second) == 0);
    }
}

TEST_CASE("many processes at once take a line each", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    std::vector<std::unique_ptr<Process>> processes(32);
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < processes.size(); ++i) {
        threads.emplace_back([&, i] {
            for (int round = 0; round < 20; ++round) {
                processes[i] = nullptr;
                processes[i] = std::make_unique<Process>(*table, i + 1, std::vector{eth0, eth1});
            }
        });
    }
    for (auto& thread : threads) thread.join();
    for (std::uint64_t i = 0; i < processes.size(); ++i) {
        CHECK(processes[i]->has_lines);
        CHECK(lines_of(*table, i + 1) == 2);
    }
    processes.clear();
    CHECK(lines_of(*table, 0) == table->lines.size());
}

TEST_CASE("looking while others write", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    constexpr std::uint64_t rounds = 20'000;
    std::atomic<int> writing = 3;
    std::vector<std::thread> threads;
    for (std::uint64_t owner = 2; owner < 5; ++owner) {
        threads.emplace_back([&, owner] {
            Process process(*table, owner, {eth0});
            for (std::uint64_t i = 1; i <= rounds; ++i) {
                const auto now = static_cast<base::Nanoseconds>(i) * base::microsecond;
                process.send(0, 100, now);
                if (i > 10) process.acknowledged(0, 100, now);
            }
            --writing;
            while (writing > 0) std::this_thread::yield();
        });
    }
    Process a(*table, 1, {eth0});
    std::uint64_t most = 0;
    for (base::Nanoseconds now = 0; writing > 0; now += base::microsecond) most = std::max(most, a.sees(0, now));
    for (auto& thread : threads) thread.join();
    CHECK(most <= 3 * 11 * 100 + 3 * 100);
    CHECK(a.load.others(0).gone <= 3 * rounds * 100);
}

TEST_CASE("a process notices that its line was written to, and takes another", "[sched][node]") {
    const auto table = std::make_unique<LoadTable>();
    Process a(*table, 1, {eth0});
    Process b(*table, 2, {eth0});
    auto& line = *std::find_if(table->lines.begin(), table->lines.end(), [](const auto& l) { return l.owner == 1; });
    line.owner = 99;
    CHECK_FALSE(a.load.take_damage());
    a.load.look(base::second);
    CHECK(a.load.take_damage());
    CHECK_FALSE(a.load.take_damage());
    CHECK(lines_of(*table, 1) == 1);
    a.send(0, 1000, base::second);
    CHECK(b.sees(0, base::second) == 1000);
}

TEST_CASE("random bytes in the table mislead for less than a second, and what is real is seen again", "[sched][node]") {
    std::mt19937_64 random(7);
    for (int round = 0; round < 200; ++round) {
        const auto table = std::make_unique<LoadTable>();
        const auto dead_or_alive = [](std::uint64_t owner) noexcept { return owner < 3 || owner % 2 == 0; };
        Process a(*table, 1, {eth0, eth1}, dead_or_alive);
        Process b(*table, 2, {eth0, eth1}, dead_or_alive);
        base::Nanoseconds now = base::second;
        a.load.look(now);
        // Anything, or what is near to something: of every word only the low bits, or none of it.
        const auto word = [&] { return random() >> (random() % 65 == 64 ? 63 : random() % 64); };
        const auto scribble = [&](sched::LoadLine& line) {
            line.owner = random() % 4 == 0 ? random() % 4 : word();
            line.rail = random() % 2 == 0 ? (random() % 2 == 0 ? eth0 : eth1) : word();
            line.sent = word();
            line.gone = random() % 2 == 0 ? line.sent - (word() >> 32) : word();
            line.stamp = static_cast<base::Nanoseconds>(random() % 2 == 0 ? word() : static_cast<std::uint64_t>(now));
        };
        for (auto& line : table->lines) {
            if (random() % 2 == 0) scribble(line);
        }
        table->changes = word();
        constexpr std::uint64_t most = (std::uint64_t{1} << 30) * 1023;
        for (int i = 0; i < 1000; ++i, now += base::millisecond) {
            CHECK(a.sees(0, now) <= most);
            static_cast<void>(a.load.take_arrivals(0));
            b.load.look(now);
            if (i >= 600) REQUIRE(a.sees(0, now) == 0);
            a.send(1, 10, now);
            a.acknowledged(1, 10, now);
        }
        // By now b has noticed if its line was damaged, and taken another.
        b.send(0, 1244, now);
        b.acknowledged(0, 10, now);
        now += base::millisecond;
        CHECK(a.sees(0, now) == 1234);
    }
}

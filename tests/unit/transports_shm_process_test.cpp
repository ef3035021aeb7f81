// Other processes that share memory with a rail: killed at any moment, or never to be trusted.
#include <catch2/catch.hpp>

#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "transports/shm/greeting.hpp"
#include "transports/shm/memory.hpp"
#include "transports/shm/rail.hpp"
#include "transports/shm/socket.hpp"

using namespace railmux;
using namespace railmux::transports;

namespace {

constexpr shm::Bulk fetching{.fetch_from = shm::least_fetch};
constexpr shm::Bulk copying{};

base::Logger& quiet() {
    static base::Logger log{base::LogLevel::off};
    return log;
}

/// A rail and what it reported of one link.
struct Party {
    explicit Party(const shm::Bulk& bulk) : rail("shm:node", bulk, quiet()) {}
    shm::Rail rail;
    LinkId link;
    bool up = false, down = false;
    std::uint64_t posted = 0, done = 0, lost = 0, received = 0;
    std::function<void(std::span<const std::byte>)> on_frame = [](auto) {};

    std::size_t poll() {
        std::array<Event, 32> events;
        const auto count = rail.poll(events);
        for (const auto& event : std::span(events).first(count)) take(event);
        return count;
    }
    void take(const Event& event) {
        switch (event.kind) {
            case EventKind::connect_request: rail.accept(link = event.link, {}); break;
            case EventKind::link_up: up = true; break;
            case EventKind::link_down: down = true; break;
            case EventKind::done:
                ++done;
                lost += event.status == WorkStatus::ok ? 0 : 1;
                break;
            case EventKind::received:
                ++received;
                on_frame(event.data);
                break;
            default: break;
        }
    }
    /// One work of these bytes, if it is taken.
    bool post(Work work, std::span<std::byte> bytes) {
        const Segment segment{bytes.data(), bytes.size()};
        work.link = link;
        work.segments = {&segment, 1};
        const auto taken = rail.post({&work, 1});
        posted += taken;
        return taken == 1;
    }
};

/// Polls until it is true; false after ten seconds.
bool party_until(Party& party, const std::function<bool()>& reached) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (!reached()) {
        party.poll();
        if (std::chrono::steady_clock::now() > limit) return false;
    }
    return true;
}

/// Another process, which floods whoever connects to it, until it is killed.
class Flooder {
public:
    explicit Flooder(const shm::Bulk& bulk, bool with_child = false) {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) FAIL("no pipe");
        process_ = ::fork();
        if (process_ == 0) run(bulk, ends[1], with_child);
        ::close(ends[1]);
        std::array<std::byte, 256> room;
        const auto got = ::read(ends[0], room.data(), room.size());
        ::close(ends[0]);
        address_.assign(room.begin(), room.begin() + std::max<ssize_t>(got, 0));
        if (with_child) child_ = static_cast<pid_t>(base::load<std::uint32_t>(address_.data() + address_.size() - 4));
        if (with_child) address_.resize(address_.size() - 4);
    }
    ~Flooder() {
        kill();
        if (child_ > 0) ::kill(child_, SIGKILL);
    }
    Flooder(const Flooder&) = delete;
    Flooder& operator=(const Flooder&) = delete;

    [[nodiscard]] std::span<const std::byte> address() const { return address_; }
    void kill() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        process_ = 0;
    }

private:
    /// Sends frames of all sizes, each filled with its own first byte, and puts to the region that the first frame names.
    [[noreturn]] static void run(const shm::Bulk& bulk, int pipe, bool with_child) {
        {
            Party party(bulk);
            std::vector<std::byte> hello(party.rail.address().begin(), party.rail.address().end());
            if (with_child) {
                hello.resize(hello.size() + 4);
                std::array<int, 2> up{};
                if (::pipe(up.data()) != 0) ::_exit(1);
                const auto child = ::fork();  // keeps what its parent opened before
                if (child == 0) {
                    while (true) ::pause();
                }
                base::store(hello.data() + hello.size() - 4, static_cast<std::uint32_t>(child));
            }
            if (::write(pipe, hello.data(), hello.size()) < 0) ::_exit(1);
            ::close(pipe);
            RegionKey target;
            party.on_frame = [&](auto bytes) {
                if (bytes.size() == sizeof target) std::memcpy(&target, bytes.data(), sizeof target);
            };
            flood(party, target);
        }
        ::_exit(0);
    }
    static void flood(Party& party, const RegionKey& target) {
        std::vector<std::byte> bytes(200'000);
        std::array<std::array<std::byte, 20'000>, 4> frames;  // one that is not done keeps the next from being taken
        for (std::uint32_t turn = 0; !party.down; ++turn) {
            party.poll();
            if (!party.up) continue;
            auto& frame = frames[party.posted % frames.size()];
            const auto size = turn * 7919 % frame.size() + 1;
            frame.fill(static_cast<std::byte>(turn));
            static_cast<void>(
                party.post({.op = Op::send}, std::span(frame).first(turn % 2 == 0 ? size : size % 56 + 1)));
            if (target.secret == 0 || turn % 5 != 0) continue;
            std::ranges::fill(bytes, std::byte{0xab});
            static_cast<void>(party.post({.op = Op::put, .remote = target}, bytes));
        }
    }

    pid_t process_ = 0;
    pid_t child_ = 0;
    std::vector<std::byte> address_;
};

std::size_t open_files() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
}

std::size_t shared_blocks() {
    std::ifstream maps("/proc/self/maps");
    std::size_t count = 0;
    for (std::string line; std::getline(maps, line);) count += line.find("memfd:railmux") != std::string::npos ? 1 : 0;
    return count;
}

/// Counts frames that are not all one byte.
struct Uniform {
    std::uint64_t wrong = 0;
    void watch(Party& party) {
        party.on_frame = [this](auto bytes) {
            wrong += std::ranges::all_of(bytes, [&](auto b) { return b == bytes.front(); }) ? 0 : 1;
        };
    }
};

}  // namespace

TEST_CASE("a process that is killed at any moment ends its link, and damages nothing", "[shm][process]") {
    std::mt19937 random(Catch::rngSeed());
    for (int round = 0; round < 60; ++round) {
        const auto bulk = round % 2 == 0 ? fetching : copying;
        const auto files = open_files();
        {
            Flooder flooder(bulk);
            Party party(bulk);
            Uniform uniform;
            uniform.watch(party);
            std::vector<std::byte> memory(200'000 + 128, std::byte{0x55});
            auto region = party.rail.add_region(std::span(memory).subspan(64, 200'000), Access::remote_write).take();
            party.link = party.rail.connect(flooder.address(), {});
            REQUIRE(party_until(party, [&] { return party.up; }));
            REQUIRE(party.post({.op = Op::send}, std::as_writable_bytes(std::span(&region.key, 1))));
            std::vector<std::byte> own(50'000, std::byte{7});
            for (auto polls = random() % 3000; polls > 0; --polls) {
                party.poll();
                if (polls % 16 == 0) static_cast<void>(party.post({.op = Op::send}, own));
            }
            flooder.kill();
            CHECK(party_until(party, [&] { return party.down; }));
            CHECK(party.done == party.posted);
            CHECK(uniform.wrong == 0);
            party.rail.drop_region(region);
            CHECK(std::ranges::count(std::span(memory).first(64), std::byte{0x55}) == 64);
            CHECK(std::ranges::count(std::span(memory).last(64), std::byte{0x55}) == 64);
            party.poll();
            CHECK(shared_blocks() == 0);
        }
        CHECK(open_files() == files);
    }
}

TEST_CASE("a process that is killed ends its link even if a child of its has kept the socket", "[shm][process]") {
    Flooder flooder(copying, true);
    Party party(copying);
    party.link = party.rail.connect(flooder.address(), {});
    REQUIRE(party_until(party, [&] { return party.received > 0; }));
    flooder.kill();
    CHECK(party_until(party, [&] { return party.down; }));
}

namespace {

constexpr std::size_t got_bytes = 150'000;

/// Shows the other side bytes of its own, and gets those of the other side, again and again.
struct Getter {
    Party party{fetching};
    std::vector<std::byte> own;
    std::vector<std::byte> room = std::vector<std::byte>(got_bytes + 128, std::byte{0x55});
    Region region;
    RegionKey there;
    std::uint64_t right = 0, wrong = 0;

    explicit Getter(std::byte fill)
        : own(got_bytes, fill), region(party.rail.add_region(own, Access::remote_read).take()) {
        party.on_frame = [this](auto bytes) {
            if (bytes.size() == sizeof there) std::memcpy(&there, bytes.data(), sizeof there);
        };
    }
    void show() { static_cast<void>(party.post({}, std::as_writable_bytes(std::span(&region.key, 1)))); }
    void step(std::byte expected) {
        const auto before = party.done;
        const auto lost = party.lost;
        party.poll();
        if (there.secret == 0 || party.down) return;
        const auto in = std::span(room).subspan(64, got_bytes);
        if (party.done > before && party.lost == lost && awaited) {
            const bool same = std::memcmp(in.data(), in.data() + 1, in.size() - 1) == 0;
            const bool whole = in.front() == expected && same;
            ++(whole ? right : wrong);
        }
        if (party.done < party.posted) return;
        std::memset(in.data(), 0, in.size());  // and no loop over bytes: sanitizers look at each
        awaited = party.post({.op = Op::get, .remote = there}, in);
    }
    bool awaited = false;  // a get, not the frame at the beginning
};

/// Another process with a Getter, until it is killed.
class OtherGetter {
public:
    OtherGetter() {
        std::array<int, 2> ends{};
        if (::pipe(ends.data()) != 0) FAIL("no pipe");
        process_ = ::fork();
        if (process_ == 0) {
            Getter getter(std::byte{2});
            const auto own = getter.party.rail.address();
            if (::write(ends[1], own.data(), own.size()) < 0) ::_exit(1);
            while (!getter.party.up) getter.party.poll();
            getter.show();
            while (!getter.party.down) getter.step(std::byte{1});
            ::_exit(0);
        }
        ::close(ends[1]);
        address.resize(256);
        const auto got = ::read(ends[0], address.data(), address.size());
        ::close(ends[0]);
        address.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    }
    ~OtherGetter() { kill(); }
    OtherGetter(const OtherGetter&) = delete;
    OtherGetter& operator=(const OtherGetter&) = delete;
    void kill() {
        if (process_ <= 0) return;
        ::kill(process_, SIGKILL);
        ::waitpid(process_, nullptr, 0);
        process_ = 0;
    }
    std::vector<std::byte> address;

private:
    pid_t process_ = 0;
};

}  // namespace

TEST_CASE("a process that is killed while both copy what each gets ends its link, and nothing else", "[shm][process]") {
    std::mt19937 random(Catch::rngSeed());
    std::uint64_t right = 0;
    for (int round = 0; round < 40; ++round) {
        OtherGetter other;
        Getter getter(std::byte{1});
        auto& party = getter.party;
        party.link = party.rail.connect(other.address, {});
        REQUIRE(party_until(party, [&] { return party.up; }));
        getter.show();
        REQUIRE(party_until(party, [&] { return getter.there.secret != 0; }));
        for (auto steps = random() % 3000; steps > 0; --steps) getter.step(std::byte{2});
        other.kill();
        CHECK(party_until(party, [&] { return party.down; }));
        CHECK(party.done == party.posted);
        CHECK(getter.wrong == 0);
        CHECK(std::ranges::count(std::span(getter.room).first(64), std::byte{0x55}) == 64);
        CHECK(std::ranges::count(std::span(getter.room).last(64), std::byte{0x55}) == 64);
        CHECK(std::ranges::all_of(getter.own, [](auto byte) { return byte == std::byte{1}; }));
        right += getter.right;
    }
    CHECK(right > 0);
}

TEST_CASE("a message has one way: what is not offered to gets is put out of the ring", "[shm][process]") {
    const shm::Bulk judging{.judge = shm::Costs{.copy_per_byte = 0.05, .fetch = 1000, .can_fetch = true}};
    Party from(judging), to(judging);
    from.link = from.rail.connect(to.rail.address(), {});
    for (int i = 0; i < 100'000 && !(from.up && to.up); ++i) from.poll(), to.poll();
    REQUIRE((from.up && to.up));
    std::vector<std::byte> source(64 * 1024), place(source.size());
    const auto region = to.rail.add_region(place, Access::remote_write).take();
    std::size_t offered = 0;
    for (std::uint64_t message = 0; message < 20; ++message) {  // while nothing is known every second one is tried
        if (from.rail.prefers_get(from.link, source.size())) {
            ++offered;
            continue;
        }
        source.assign(source.size(), static_cast<std::byte>(message));
        REQUIRE(from.post({.op = Op::put, .remote = region.key}, source));
        while (from.done < from.posted || place.back() != source.back()) from.poll(), to.poll();
    }
    CHECK(offered == 10);
    to.rail.drop_region(region);
}

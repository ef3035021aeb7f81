// World: a fixture at work. It polls both rails with changing numbers of events, keeps what came for each link, and
// checks at every event what must hold always: rules 2, 4 and 5, depth, and the lending of received bytes.
//
// Threads: one thread.
// Lifetime: one test.
#pragma once

#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fixture.hpp"
#include "pattern.hpp"

namespace railmux::contract {

using namespace transports;  // NOLINT: the suite is about nothing else

using Bytes = std::vector<std::byte>;

using test::pattern;
[[nodiscard]] bool is_pattern(std::span<const std::byte> bytes, std::uint64_t seed);

/// One end of a link.
struct End {
    Rail* rail = nullptr;
    LinkId id;
    friend bool operator==(const End&, const End&) = default;
};

/// All that was heard of one end.
struct LinkLog {
    bool known = false;  // through connect or a request
    bool requested = false;
    bool up = false;
    bool closing = false;  // disconnected here: takes any number of works, all lost
    bool down = false;
    Bytes hello;  // of the request
    Bytes reply;  // with link_up, or with link_down if refused
    std::string cause;
    std::vector<Bytes> frames;
    std::vector<std::uint32_t> immediates;
    std::unordered_map<std::uint64_t, std::size_t> outstanding;  // works by cookie
    std::size_t undone = 0;
    std::size_t done = 0;
    std::size_t lost = 0;
    std::size_t denied = 0;
};

class World {
public:
    explicit World(Fixture fixture, std::uint64_t seed);
    ~World();
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    [[nodiscard]] Rail& a() const { return fixture_.a(); }
    [[nodiscard]] Rail& b() const { return fixture_.b(); }
    [[nodiscard]] bool one_rail() const { return fixture_.second == nullptr; }
    void close_b() { fixture_.second.reset(); }
    [[nodiscard]] std::mt19937_64& random() { return random_; }

    // --- Links -------------------------------------------------------------------------------------------------------
    [[nodiscard]] End connect(Rail& from, std::span<const std::byte> address, std::span<const std::byte> hello);
    /// The next request that came to this rail and was not returned before.
    [[nodiscard]] End requested(Rail& at);
    /// A link from a to b: both ends up.
    [[nodiscard]] std::pair<End, End> link();
    [[nodiscard]] std::pair<End, End> link(Rail& from, Rail& to);
    void disconnect(const End& end);
    [[nodiscard]] LinkLog& log(const End& end);

    // --- Works -------------------------------------------------------------------------------------------------------
    /// Posts once; the number taken.
    std::size_t post(Rail& rail, std::span<const Work> works);
    /// Posts, polling while it is refused.
    void post_all(Rail& rail, std::span<const Work> works);
    /// Sends from memory the world keeps; returns its cookie.
    std::uint64_t send(const End& from, std::span<const std::byte> bytes);
    [[nodiscard]] std::uint64_t next_cookie() { return next_cookie_++; }

    // --- Time --------------------------------------------------------------------------------------------------------
    std::size_t poll(Rail& rail);
    /// Polls each rail once; lets time pass if nothing came. False when nothing can come any more.
    bool round();
    /// Rounds until it is true; the test fails when that takes too long.
    void until(const char* what, const std::function<bool()>& reached);
    /// Rounds until nothing has come for a while: to see that no more does.
    void settle();
    /// All accepted works are done.
    void until_done(const End& end);

    /// Called with each event, while what it lends is valid.
    std::function<void(Rail&, const Event&)> on_event = [](Rail&, const Event&) {};
    bool keep_frames = true;
    bool check_depth = true;  // off where links die unannounced: a dead link takes any number of works, all lost

private:
    struct Side {                                                        // of a rail
        std::vector<std::pair<std::span<const std::byte>, Bytes>> lent;  // and what it must be till the next poll
        std::vector<End> requests;
        std::map<std::pair<std::uint32_t, std::uint32_t>, LinkLog> links;
    };
    void take(Rail& rail, Side& side, const Event& event);
    void take_done(LinkLog& link, const Event& event);

    Fixture fixture_;
    std::mt19937_64 random_;
    std::map<Rail*, Side> sides_;
    std::unordered_map<std::uint64_t, Bytes> sent_;  // what send() sends, until done
    std::uint64_t next_cookie_ = 1;
    std::uint64_t posts_ = 0;
};

/// Runs `body` on each fixture, in a section of its own, and then sees to it that all accepted works are done.
void on_each_fixture(const std::vector<FixtureMaker>& fixtures, const std::function<void(World&)>& body);
inline void on_each_fixture(const std::function<void(World&)>& body) { on_each_fixture(fixtures(), body); }

}  // namespace railmux::contract

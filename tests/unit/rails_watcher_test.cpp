// The watcher by itself: which links it looks at, when it wants to look again, what it sends, and which ones it gives up.
// Whole rail managers are watched in rails_watching_test.cpp.
#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "rails/watcher.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

constexpr base::Nanoseconds watch_ms = base::millisecond;
constexpr std::uint64_t watch_get = 1 << 20;

std::vector<transports::RailTraits> watched_rails(bool keepalive) {
    std::vector<transports::RailTraits> all{rails::test::made_traits("eth0"), rails::test::made_traits("eth1")};
    for (auto& traits : all) traits.keepalive = keepalive;
    return all;
}

/// Links whose networks confirm what is sent over them before anybody looks again, but for those that are cut. They are looked
/// at when the watcher says so, and at no other time.
struct WatchedLinks final : private LinkHost {
    rails::test::Made made;
    Watcher watcher;
    base::Nanoseconds& now = made.now;
    base::Nanoseconds due = base::never;
    int looks = 0;
    std::set<std::uint32_t> cut, unconfirmed;
    std::vector<std::uint32_t> sent;  // by the watcher, over these
    struct Lost {
        std::uint32_t link = 0;
        std::string cause;
        base::Nanoseconds at = 0;
    };
    std::vector<Lost> lost;

    explicit WatchedLinks(const Watcher::Options& options = {}, bool keepalive = true)
        : made(watched_rails(keepalive)),
          watcher(options, watch_get, made.rails, made.peers, made.links, made.pool, *this) {}

    /// `known`: its network tells something.
    Link& link(std::uint32_t peer, std::uint32_t rail, bool known = true, int ns = 1) {
        Link& link = made.add_link(peer, rail, ns);
        made.pulse(link).known = known;
        link.said_at = now;
        due = std::min(due, watcher.link_up(now));
        return link;
    }
    /// Something goes over it; its network says so, and asks again, where it is cut.
    void send(Link& link) {
        if (link.silence.settled()) due = std::min(due, watcher.unsettle(link, now));
        auto& pulse = made.pulse(link);
        pulse.asked += pulse.outstanding ? 1 : 0;
        pulse.outstanding = true;
        if (!cut.contains(link.slot)) unconfirmed.insert(link.slot);
    }
    template <typename Each>
    void run(base::Nanoseconds time, Each each) {
        const auto end = now + time;
        while (due <= end) {
            now = std::max(now, due);
            confirm();
            each();
            due = watcher.look(now);
            REQUIRE(due > now);
            ++looks;
        }
        now = end;
    }
    void run(base::Nanoseconds time) {
        run(time, [] {});
    }
    [[nodiscard]] auto sent_over(const Link& link) const { return std::ranges::count(sent, link.slot); }

private:
    void confirm() {
        for (const auto slot : unconfirmed) {
            auto& pulse = made.pulse(made.links.at(slot));
            ++pulse.heard;
            pulse.outstanding = false;
        }
        unconfirmed.clear();
    }
    void enqueue(Link& link, Frame* frame, base::Nanoseconds) override {
        REQUIRE(frame->type == FrameType::ack);
        made.pool.give(frame);
        sent.push_back(link.slot);
        send(link);
    }
    void break_off(Link& link, std::string_view cause, base::Nanoseconds at) override {
        lost.push_back({link.slot, std::string(cause), at});
        made.lose(link);
    }
};

}  // namespace

TEST_CASE("watcher: an idle link is sent something at its turn, and looked at no more often than that needs",
          "[rails][silence]") {
    WatchedLinks f;
    Link& link = f.link(f.made.add_peer(), 0);
    CHECK(f.due == f.now + Watcher::Options{}.keepalive);
    f.run(Watcher::Options{}.keepalive);
    CHECK(f.sent_over(link) == 1);
    CHECK(f.due - f.now > 40 * watch_ms);  // for which kernels hold acknowledgements back
    f.run(10 * base::second);
    CHECK(f.sent_over(link) > 8);
    CHECK(f.looks <= 90);  // a turn, and whether it is confirmed
    CHECK(f.lost.empty());
    CHECK(link.silence.settled());
    CHECK(f.made.pool.in_use() == 0);
}

TEST_CASE("watcher: nothing is watched where nobody wants it, or the network needs nothing", "[rails][silence]") {
    const bool wanted = GENERATE(true, false);
    WatchedLinks f({.keepalive = wanted ? base::second / 4 : 0}, !wanted);
    Link& link = f.link(f.made.add_peer(), 0);
    f.cut.insert(link.slot);
    CHECK(f.watcher.unsettle(link, f.now) == base::never);
    f.run(300 * base::second);
    CHECK(f.sent.empty());
    CHECK(f.lost.empty());
}

TEST_CASE("watcher: who has said goodbye is sent nothing more", "[rails][silence]") {
    WatchedLinks f;
    const auto peer = f.made.add_peer();
    f.link(peer, 0);
    f.made.peers[peer].left = true;
    f.run(5 * base::second);
    CHECK(f.sent.empty());
}

TEST_CASE("watcher: what waits on a link stands for a keepalive, and is looked at until it has gone",
          "[rails][silence]") {
    WatchedLinks f;
    Link& link = f.link(f.made.add_peer(), 0);
    Frame* frame = f.made.pool.take(FrameHeader::size);
    link.outbox.push(frame);
    link.queued_bytes = FrameHeader::size;
    f.run(5 * base::second + Watcher::Options{}.keepalive / 2);  // between two turns
    CHECK(f.sent.empty());
    CHECK_FALSE(link.silence.settled());
    CHECK(f.due - f.now <= Silence::period);
    f.made.pool.give(link.outbox.pop());
    link.queued_bytes = 0;
    f.run(Silence::period);
    CHECK(link.silence.settled());
}

TEST_CASE("watcher: all links together have one keepalive in 5 ms at most", "[rails][silence]") {
    WatchedLinks f;
    constexpr int many = 1000;
    for (int i = 0; i < many; ++i) f.link(f.made.add_peer(), 0);
    f.run(Watcher::Options{}.keepalive);
    CHECK(f.sent.size() == many);  // the first turn: nobody knew how many there would be
    f.run(20 * base::second);
    CHECK(f.sent.size() <= many + 4 * many);
    CHECK(f.sent.size() >= 3 * many);
}

TEST_CASE("watcher: the only link of a peer is lost within a second, idle or not, whatever others do",
          "[rails][silence]") {
    WatchedLinks f;
    Link& silent = f.link(f.made.add_peer(), 0);
    Link& other = f.link(f.made.add_peer(), 1);
    f.run(5 * base::second, [&] { ++f.made.pulse(silent).received; });
    f.cut.insert(silent.slot);
    const auto begun = f.now;
    if (GENERATE(true, false)) f.send(silent);
    f.run(2 * base::second, [&] { f.send(other); });
    REQUIRE(f.lost.size() == 1);
    CHECK(f.lost[0].link == silent.slot);
    CHECK(f.lost[0].cause.starts_with("nothing acknowledged for 0."));
    CHECK(f.lost[0].at - begun > 500 * watch_ms);
    CHECK(f.lost[0].at - begun <= 1100 * watch_ms);
    CHECK(f.sent_over(silent) > 0);
}

TEST_CASE("watcher: a link is lost soon when its peer, asked over another one, is heard there", "[rails][silence]") {
    WatchedLinks f;
    const auto peer = f.made.add_peer();
    Link& silent = f.link(peer, 0);
    Link& other = f.link(peer, 1);
    const bool both = GENERATE(true, false);
    f.cut.insert(silent.slot);
    if (both) f.cut.insert(other.slot);
    f.send(silent);
    f.run(150 * watch_ms);
    CHECK(f.sent_over(other) == 1);
    CHECK(f.lost.size() == (both ? 0 : 1));
    f.run(2 * base::second);
    CHECK(f.lost.size() == (both ? 2 : 1));
    CHECK(f.lost[0].link == silent.slot);
}

TEST_CASE("watcher: a link has as long as what is on it takes, gets included", "[rails][silence]") {
    WatchedLinks f;
    Link& slow = f.link(f.made.add_peer(), 0, true, 1000);  // 1 MB/s
    const bool gets = GENERATE(true, false);
    if (gets) slow.gets = 2;
    if (!gets) slow.underway.handed(2 * watch_get, f.now);
    f.cut.insert(slow.slot);
    f.send(slow);
    f.run(10 * base::second);  // five times two seconds
    CHECK(f.lost.empty());
    f.run(2 * base::second);
    CHECK(f.lost.size() == 1);
}

TEST_CASE("watcher: where the network tells nothing, a link has 30 s while others are heard, else two minutes",
          "[rails][silence]") {
    WatchedLinks f;
    const auto peer = f.made.add_peer();
    const auto begun = f.now;
    f.link(peer, 0, false);
    const bool heard = GENERATE(true, false);
    if (heard) {
        Link& other = f.link(peer, 1, false);
        f.run(40 * base::second, [&] { other.said_at = f.now; });
    } else {
        f.run(119 * base::second);
        CHECK(f.lost.empty());
        f.run(3 * base::second);
    }
    REQUIRE(f.lost.size() == 1);
    CHECK(f.lost[0].at - begun >= (heard ? 30 : 119) * base::second);
    CHECK(f.lost[0].at - begun <= (heard ? 31 : 122) * base::second);
    CHECK(f.lost[0].cause.starts_with("nothing came for "));
    CHECK(f.lost[0].cause.ends_with("but over other links") == heard);
}

TEST_CASE("watcher: time in which nobody looked is held against no link", "[rails][silence]") {
    WatchedLinks f;
    const auto peer = f.made.add_peer();
    Link& told = f.link(peer, 0);
    f.link(peer, 1, false);
    f.run(base::second);
    f.cut.insert(told.slot);
    f.send(told);
    f.now += 1000 * base::second;  // this process computed, or was stopped
    static_cast<void>(f.watcher.look(f.now));
    CHECK(f.lost.empty());
}

TEST_CASE("watcher: over a network that tells nothing no side rests for longer than the other one waits",
          "[rails][silence]") {
    const auto keepalive = GENERATE(as<base::Nanoseconds>(), 250 * watch_ms, 10'000 * watch_ms);
    WatchedLinks all({.keepalive = keepalive});
    Link& link = all.link(all.made.add_peer(), 0, false);
    constexpr int turns = 40;
    all.run(turns * keepalive, [&] { link.said_at = all.now; });  // the other side sends something each turn
    const auto sent = all.sent_over(link);
    CHECK(all.lost.empty());
    CHECK(sent >= (keepalive > base::second ? turns - 2 : turns / 4 - 1));
    CHECK(sent <= (keepalive > base::second ? turns : turns / 3));
}

// What had come over a link that is over: two sides that ask each other.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rails/settling.hpp"
#include "transports/sim/fabric.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

using Nonces = std::vector<std::uint64_t>;

constexpr base::Nanoseconds now = base::second;

/// One end of some links to one peer. What it sends stays here.
class Side final : public LinkHost {
public:
    struct Sent {
        FrameType type{};
        std::uint64_t by = 0;  // the link
        std::vector<std::byte> body;
    };

    explicit Side(const Nonces& nonces) {
        auto& known = peers[peer];
        known.talk = std::make_unique<Conversation>(pool);
        for (const auto nonce : nonces) add(nonce);
    }

    Link& add(std::uint64_t nonce) {
        Link& link = links.add(0, {.index = static_cast<std::uint32_t>(nonce), .generation = 1});
        link.peer = peer;
        link.state = LinkState::live;
        link.nonce = nonce;
        link.checksum = true;
        talk().links.push_back(link.slot);
        talk().candidates.push_back({});
        return link;
    }
    /// It is no longer among those of the peer.
    void drop(Link& link) {
        const auto place = std::ranges::find(talk().links, link.slot);
        if (place == talk().links.end()) return;
        talk().candidates.erase(talk().candidates.begin() + (place - talk().links.begin()));
        talk().links.erase(place);
    }
    void end(std::uint64_t nonce) {
        Link& link = *named(nonce);
        drop(link);
        links.remove(link);
        settling.link_over(peer, nonce, now);
    }
    /// A put that went over the link has to wait until that is settled.
    void lose_put(std::uint64_t nonce) {
        Link& link = *named(nonce);
        Frame& frame = *pool.take(FrameHeader::size);
        frame.piece_count = 1;
        frame.link = link.slot;
        CHECK(settling.park(link, frame));
        CHECK(frame.parked);
        CHECK(frame.link == no_link);
        pool.give(&frame);
        Settling::parked_for(talk(), link);
        end(nonce);
        settling.ask(talk(), now);
    }
    [[nodiscard]] Link* named(std::uint64_t nonce) {
        Link* found = nullptr;
        links.for_each([&](Link& link) { found = link.nonce == nonce ? &link : found; });
        return found;
    }
    [[nodiscard]] Conversation& talk() { return *peers[peer].talk; }
    /// All that was sent since this was asked last.
    [[nodiscard]] std::vector<Sent> take_sent() { return std::exchange(sent_, {}); }

    FramePool pool;
    PeerTable peers;
    std::uint32_t peer = peers.of_instance(7, no_rank);
    LinkTable links{1};
    Nonces broken_off;

private:
    void enqueue(Link& link, Frame* frame, base::Nanoseconds) override {
        const std::span bytes(frame->data(), frame->bytes);
        const auto body = bytes.subspan(FrameHeader::size);
        sent_.push_back({.type = frame->type, .by = link.nonce, .body = {body.begin(), body.end()}});
        pool.give(frame);
    }
    void break_off(Link& link, std::string_view, base::Nanoseconds) override {
        broken_off.push_back(link.nonce);
        link.state = LinkState::closing;
        drop(link);
    }

    static Transports transports(transports::sim::Fabric& fabric) {
        fabric.add_rail("a", {.device = "eth0"});
        Transports all;
        all.push_back(transports::sim::make_transport(fabric, "a"));
        return all;
    }

    base::Logger log_{base::LogLevel::off};
    transports::sim::Fabric fabric_;
    RailSet rails_{transports(fabric_), {}, log_};
    Looks looks_;
    KeepingUp keeping_up_;
    std::unique_ptr<sched::Policy> policy_ = sched::make_policy("vft", 1);
    Ledger ledger_{1, *policy_, peers, links, looks_, keeping_up_};
    AckRoute route_{*policy_, ledger_, links, base::millisecond};
    std::vector<Sent> sent_;

public:
    Settling settling{rails_, peers, links, pool, route_, *this};
};

/// Both ends of the same links.
struct TwoEnds {
    explicit TwoEnds(const Nonces& nonces) : a(nonces), b(nonces) {}

    /// What `from` has sent comes there. Returns whether it settled all that was open there.
    static bool pass(Side& from, Side& to) {
        bool settled = false;
        for (const auto& sent : from.take_sent()) {
            Link* const link = to.named(sent.by);
            if (link == nullptr) continue;  // lost with it
            if (sent.type == FrameType::settle) {
                CHECK(to.settling.asked(*link, sent.body, now));
                continue;
            }
            CHECK(sent.type == FrameType::settled);
            const auto answer = Settling::parse(sent.body);
            REQUIRE(answer);
            settled = to.settling.answered(to.talk(), *answer, now) || settled;
        }
        return settled;
    }

    Side a;
    Side b;
};

}  // namespace

TEST_CASE("only puts wait for what is to be settled, and where a second one does harm", "[rails][settling]") {
    Side side({11});
    Link& link = *side.named(11);
    Frame& frame = *side.pool.take(FrameHeader::size);
    CHECK_FALSE(side.settling.park(link, frame));
    frame.piece_count = 1;
    link.checksum = false;
    CHECK_FALSE(side.settling.park(link, frame));
    CHECK_FALSE(frame.parked);
    link.checksum = true;
    CHECK(side.settling.park(link, frame));
    side.pool.give(&frame);
}

TEST_CASE("a lost link is settled when it is over at the other end, too", "[rails][settling]") {
    TwoEnds pair({11, 12});
    pair.a.lose_put(11);
    CHECK_FALSE(TwoEnds::pass(pair.a, pair.b));
    CHECK(pair.b.broken_off == Nonces{11});  // it was live there
    CHECK(pair.b.take_sent().empty());       // and something may still come over it
    pair.b.end(11);
    CHECK(TwoEnds::pass(pair.b, pair.a));
    CHECK(pair.a.talk().settling.empty());

    SECTION("and that is said again when it is asked again, and heard once") {
        pair.a.talk().settling.push_back(11);
        pair.a.settling.ask(pair.a.talk(), now);
        CHECK_FALSE(TwoEnds::pass(pair.a, pair.b));
        const auto answers = pair.b.take_sent();
        REQUIRE(answers.size() == 1);
        const auto answer = Settling::parse(answers.front().body);
        REQUIRE(answer);
        CHECK(pair.a.settling.answered(pair.a.talk(), *answer, now));
        CHECK_FALSE(pair.a.settling.answered(pair.a.talk(), *answer, now));
    }
}

TEST_CASE("what is parked waits until all lost links are settled", "[rails][settling]") {
    TwoEnds pair({11, 12, 13});
    pair.a.lose_put(11);
    pair.a.lose_put(12);
    static_cast<void>(TwoEnds::pass(pair.a, pair.b));
    pair.b.end(11);
    CHECK_FALSE(TwoEnds::pass(pair.b, pair.a));
    pair.b.end(12);
    CHECK(TwoEnds::pass(pair.b, pair.a));
}

TEST_CASE("a question that was lost with its link is asked again", "[rails][settling]") {
    TwoEnds pair({11, 12});
    pair.a.lose_put(11);
    CHECK(pair.a.take_sent().size() == 1);
    pair.a.end(12);
    pair.a.settling.ask(pair.a.talk(), now);
    CHECK(pair.a.take_sent().empty());  // there is none to ask over
    pair.b.end(11);
    pair.b.end(12);
    pair.a.add(13);
    pair.b.add(13);
    pair.a.settling.link_up(pair.a.talk(), now);
    CHECK_FALSE(TwoEnds::pass(pair.a, pair.b));
    CHECK(TwoEnds::pass(pair.b, pair.a));
}

TEST_CASE("an answer is given again over the next link if the one that it went by is over", "[rails][settling]") {
    TwoEnds pair({11, 12});
    pair.a.lose_put(11);
    pair.b.end(11);
    static_cast<void>(TwoEnds::pass(pair.a, pair.b));
    CHECK(pair.b.take_sent().size() == 1);  // and is lost
    pair.a.end(12);
    pair.b.end(12);
    pair.a.add(13);
    pair.b.add(13);
    pair.b.settling.link_up(pair.b.talk(), now);
    CHECK(TwoEnds::pass(pair.b, pair.a));
    pair.b.settling.link_up(pair.b.talk(), now);
    CHECK(pair.b.take_sent().empty());  // that link is up still
}

TEST_CASE("many lost links are settled some at a time", "[rails][settling]") {
    Nonces nonces(100);
    for (std::size_t i = 0; i < nonces.size(); ++i) nonces[i] = i + 1;
    TwoEnds pair(nonces);
    for (std::uint64_t nonce = 1; nonce < 100; ++nonce) {
        pair.a.lose_put(nonce);
        static_cast<void>(pair.a.take_sent());
        pair.b.end(nonce);
    }
    pair.a.settling.ask(pair.a.talk(), now);
    bool settled = false;
    for (int round = 0; round < 2; ++round) {
        CHECK_FALSE(settled);
        static_cast<void>(TwoEnds::pass(pair.a, pair.b));
        settled = TwoEnds::pass(pair.b, pair.a);
    }
    CHECK(settled);
}

TEST_CASE("who asks without taking the answers is not answered over that link", "[rails][settling]") {
    TwoEnds pair({11, 12});
    pair.a.lose_put(11);
    pair.b.named(12)->queued_answers = Link::most_answers + 1;
    static_cast<void>(TwoEnds::pass(pair.a, pair.b));
    CHECK(pair.b.broken_off == Nonces{12});
    CHECK(pair.b.take_sent().empty());
}

TEST_CASE("malformed questions and answers are refused", "[rails][settling]") {
    Side side({11});
    Link& link = *side.named(11);
    const std::vector<std::byte> zeros(65 * 8);
    for (const std::size_t size : {0, 4, 8, 12, 65 * 8}) {  // of which 8 name no link
        CHECK_FALSE(side.settling.asked(link, std::span(zeros).first(size), now));
    }
    std::vector<std::byte> answer(8 + 8);
    answer[0] = std::byte{1};
    CHECK(Settling::parse(answer));
    CHECK_FALSE(Settling::parse(std::span(answer).first(15)));
    CHECK_FALSE(Settling::parse(std::span(answer).first(7)));
    answer[0] = std::byte{65};
    answer.resize(1024);
    CHECK_FALSE(Settling::parse(answer));
    CHECK(side.take_sent().empty());
}

// A fixed little conversation, with one fault at every place where it can happen: whatever the fault, works complete
// once (rule 2) and links end in order (rule 5), which World checks; faults that only cost time change nothing else.
#include "world.hpp"

#include <algorithm>

#include "transports/faulty_rail.hpp"

using namespace railmux::contract;

namespace {

constexpr std::size_t frames = 6;  // in each direction
constexpr std::size_t puts = 2;
constexpr std::size_t put_size = 5000;

enum class Side { a, b };

/// Connects, sends frames both ways and puts from a to b, and disconnects; or as much of it as goes.
class Conversation {
public:
    explicit Conversation(World& world)
        : world_(world), memory_(puts * put_size), region_(world.b().add_region(memory_, Access::remote_write).take()) {
        world.check_depth = false;
        world.on_event = [this](Rail& rail, const Event& event) {
            standstill_ = 0;
            if (event.kind != EventKind::connect_request) return;
            far_ = {&rail, event.link};
            rail.accept(event.link, reply_);
        };
        near_ = world.connect(world.a(), world.b().address(), hello_);
    }
    ~Conversation() { world_.b().drop_region(region_); }
    Conversation(const Conversation&) = delete;
    Conversation& operator=(const Conversation&) = delete;

    void to_its_end() {
        world_.until("the end of the conversation", [&] { return speak(), over(); });
        hang_up();
    }
    /// When it may stand still: until so many rounds have brought nothing, then both sides give up.
    void until_standstill(int rounds) {
        for (; standstill_ < rounds && !over(); ++standstill_) {
            speak();
            world_.round();
        }
        far_gives_up_ = true;
        hang_up();
    }
    [[nodiscard]] LinkLog& near() { return world_.log(near_); }
    [[nodiscard]] LinkLog& far() { return world_.log(far_); }
    [[nodiscard]] bool complete() {
        return near().lost + far().lost == 0 && near().frames == said_ && far().frames == said_ &&
               is_pattern(std::span(memory_).first(put_size), 0) && is_pattern(std::span(memory_).last(put_size), 1);
    }

private:
    struct Speech {  // the works of one side
        std::vector<Segment> segments;
        std::vector<Work> works;
        std::size_t posted = 0;
    };

    void speak() {
        if (near().up || near().down) say(near_, from_a_, true);
        if (far_.rail != nullptr && (far().up || far().down)) say(far_, from_b_, false);
    }
    void say(const End& end, Speech& speech, bool with_puts) {
        if (speech.works.empty()) prepare(end, speech, with_puts);
        speech.posted += world_.post(*end.rail, std::span(speech.works).subspan(speech.posted));
    }
    void prepare(const End& end, Speech& speech, bool with_puts) {
        for (std::size_t i = 0; with_puts && i < puts; ++i) speech.segments.push_back({put_[i].data(), put_size});
        for (auto& frame : said_) speech.segments.push_back({frame.data(), frame.size()});
        for (std::size_t i = 0; i < speech.segments.size(); ++i) {
            Work work{.link = end.id, .segments = {&speech.segments[i], 1}, .cookie = i};
            if (with_puts && i < puts) {
                work.op = Op::put;
                work.remote = region_.key;
                work.offset = i * put_size;
            }
            speech.works.push_back(work);
        }
    }
    [[nodiscard]] bool spoken(const End& end, const Speech& speech) {
        return !speech.works.empty() && speech.posted == speech.works.size() && world_.log(end).undone == 0;
    }
    [[nodiscard]] bool over() {
        if (!spoken(near_, from_a_)) return false;
        if (far_.rail == nullptr) return near().down;
        if (!spoken(far_, from_b_)) return false;
        const bool heard = near().frames.size() >= frames && far().frames.size() >= frames;
        return heard || (near().down && far().down);
    }
    void hang_up() {
        give_up_far();
        world_.settle();  // puts may be on their way on rails that do not order; and a late request may come
        world_.disconnect(near_);
        world_.until("link_down", [&] { return give_up_far(), near().down && (far_.rail == nullptr || far().down); });
        world_.settle();
    }
    /// As soon as there is a far end, which may come late: one that stalls for good hears of no end but its own.
    void give_up_far() {
        if (far_gives_up_ && far_.rail != nullptr && !far().closing) world_.disconnect(far_);
    }

    World& world_;
    Bytes hello_ = pattern(56, 1), reply_ = pattern(64, 2);
    std::vector<Bytes> said_ = [] {
        std::vector<Bytes> all;
        for (std::size_t i = 0; i < frames; ++i) all.push_back(pattern(i * 300, 10));  // by size, for unordered rails
        return all;
    }();
    std::vector<Bytes> put_{pattern(put_size, 0), pattern(put_size, 1)};
    Bytes memory_;
    Region region_;
    End near_, far_;
    bool far_gives_up_ = false;
    int standstill_ = 0;  // rounds since the last event
    Speech from_a_, from_b_;
};

using Run = std::function<void(Conversation&, const FaultyRail&)>;

/// The conversation with one side behind `plan`; returns how many steps that side took.
std::uint64_t converse(const FixtureMaker& maker, Side side, const std::string& plan, const Run& run) {
    INFO("fixture " << maker.name << ", seed " << Catch::rngSeed() << ", side " << (side == Side::a ? "a" : "b")
                    << " behind " << plan);
    auto fixture = maker.make(Catch::rngSeed());
    auto& rail = side == Side::a || !fixture.second ? fixture.first : fixture.second;
    auto faulty = std::make_unique<FaultyRail>(std::move(rail), FaultyRail::Plan::parse(plan));
    const auto& counts = *faulty;
    rail = std::move(faulty);
    fixture.idle = [idle = fixture.idle] { return idle(), true; };
    World world(std::move(fixture), Catch::rngSeed());
    Conversation conversation(world);
    run(conversation, counts);
    return counts.steps();
}

/// `fault` at every step of either side, and a few beyond.
void at_every_step(const std::string& fault, const std::string& suffix, const Run& run) {
    for (const auto& maker : plain_fixtures()) {
        DYNAMIC_SECTION(maker.name) {
            for (const auto side : {Side::a, Side::b}) {
                const auto steps =
                    converse(maker, side, "refuse=0%", [](Conversation& conversation, const FaultyRail&) {
                        conversation.to_its_end();
                        REQUIRE(conversation.near().frames.size() == frames);
                    });
                REQUIRE(steps > 10);
                for (auto n = 1 + Catch::rngSeed() % maker.stride; n <= steps + 2; n += maker.stride) {
                    converse(maker, side, fault + "@" + std::to_string(n) + suffix, run);
                }
            }
        }
    }
}

void sorted(std::vector<Bytes>& all) {  // for rails that do not order
    std::ranges::sort(all, {}, [](const Bytes& bytes) { return bytes.size(); });
}

/// Ends well, with everything heard once.
void unharmed(Conversation& conversation, const FaultyRail&) {
    conversation.to_its_end();
    sorted(conversation.near().frames);
    sorted(conversation.far().frames);
    if (!conversation.complete()) FAIL("something was lost, damaged or came twice");
}

}  // namespace

TEST_CASE("the link is killed at every step", "[contract][faults]") {
    at_every_step("kill_link", "", [](Conversation& conversation, const FaultyRail&) { conversation.to_its_end(); });
}

TEST_CASE("every work is killed", "[contract][faults]") {
    at_every_step("kill_work", "", [](Conversation& conversation, const FaultyRail& rail) {
        conversation.to_its_end();
        const bool struck = rail.plan().rules[0].at <= rail.works();
        CHECK((conversation.near().lost + conversation.far().lost > 0) == struck);
    });
}

TEST_CASE("the link stalls at every step, for a while", "[contract][faults]") {
    at_every_step("stall", ":20", unharmed);
}

TEST_CASE("the link stalls at every step, for good", "[contract][faults]") {
    at_every_step("stall", "",
                  [](Conversation& conversation, const FaultyRail&) { conversation.until_standstill(200); });
}

TEST_CASE("both sides give up while the link comes up", "[contract][faults]") {
    at_every_step("stall", "", [](Conversation& conversation, const FaultyRail& rail) {
        conversation.until_standstill(static_cast<int>(rail.plan().rules[0].at) - 1);
    });
}

TEST_CASE("every event is delayed", "[contract][faults]") { at_every_step("delay", ":7", unharmed); }
TEST_CASE("every work is delayed", "[contract][faults]") { at_every_step("delay_work", ":7", unharmed); }
TEST_CASE("every work is refused once", "[contract][faults]") { at_every_step("refuse", "", unharmed); }

TEST_CASE("every frame comes twice", "[contract][faults]") {
    at_every_step("duplicate", "", [](Conversation& conversation, const FaultyRail& rail) {
        conversation.to_its_end();
        auto all = conversation.near().frames;
        all.insert(all.end(), conversation.far().frames.begin(), conversation.far().frames.end());
        const auto at = rail.plan().rules[0].at;
        const auto received = rail.traits().name == "self" ? 2 * frames : frames;
        CHECK(all.size() == 2 * frames + (at <= received ? 1 : 0));
    });
}

TEST_CASE("random plans", "[contract][faults]") {
    for (const auto& maker : plain_fixtures()) {
        DYNAMIC_SECTION(maker.name) {
            for (std::uint64_t i = 0; i < 60; i += maker.stride) {
                auto plan = FaultyRail::Plan::random(Catch::rngSeed() + i);
                for (auto& rule : plan.rules) {
                    if (rule.at != 0) rule.at = 1 + rule.at % 40;  // within the conversation
                }
                converse(maker, i % 2 == 0 ? Side::a : Side::b, plan.text(),
                         [](Conversation& conversation, const FaultyRail&) { conversation.until_standstill(3000); });
            }
        }
    }
}

// The survey: what is told of links that live and that have ended, and what comes of measuring them.
#include <catch2/catch.hpp>

#include <array>
#include <deque>
#include <utility>
#include <vector>

#include "model/probe_wire.hpp"
#include "rails/survey.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

/// Two links that are each other's other end: what is measured over one the other answers.
struct Surveyed final : private AssessorHost {
    rails::test::Made made{{rails::test::made_traits("eth0"), rails::test::made_traits("eth1")}};
    EagerSwitch eager{{.by_model = false}, made.rails, made.links};
    Groups groups{made.rails, made.peers, made.links, made.ledger, eager, made.log};
    Assessor assessor{{.probe = false}, &clock, made.rails, made.links, made.peers, made.pool, *this, made.log};
    Flooder flooder{made.links, made.pool, assessor};
    Survey survey{made.rails, made.peers, made.links, {made.ledger, eager, groups}, assessor, flooder};
    std::uint32_t peer = made.add_peer();
    Link& link = made.add_link(peer, 0);
    Link& mirror = made.add_link(made.add_peer(), 1);  // what each end spends is counted by rail

    Surveyed() {
        time = base::second;
        assessor.link_up(link, time);
        assessor.link_up(mirror, time);
    }
    ~Surveyed() {
        for (auto& [to, frame] : under_way) made.pool.give(frame);
        CHECK(made.pool.in_use() == 0);
    }
    /// Until nothing is measured any more.
    void measure() {
        for (int steps = 0; assessor.working() || !under_way.empty(); ++steps) {
            REQUIRE(steps < 100'000);
            if (!under_way.empty()) {
                arrive();
            } else if (!assessor.step(time)) {
                time += 10 * base::microsecond;
            }
        }
    }
    void lose(Link& lost) {
        assessor.link_down(lost);
        flooder.link_down(lost);
        made.lose(lost);
    }
    static base::Nanoseconds clock() { return time; }
    static inline base::Nanoseconds time = 0;
    std::deque<std::pair<Link*, Frame*>> under_way;
    static constexpr base::Nanoseconds sent_in = 300, received_in = 200;
    std::array<ProbeSpent, 2> sent;  // by rail; with the receives of probes and their answers

private:
    void arrive() {
        const auto [to, frame] = under_way.front();
        under_way.pop_front();
        time += base::microsecond + frame->bytes;
        const auto body = std::span(frame->data(), frame->bytes).subspan(FrameHeader::size);
        const Look look{.begun = time - received_in, .at = time, .receive_cpu = received_in};
        if (frame->type != FrameType::model) sent[to->rail].cpu += std::chrono::nanoseconds(received_in);
        if (frame->type == FrameType::probe) CHECK(assessor.on_probe(*to, body, look));
        if (frame->type == FrameType::probe_reply) {
            const auto reply = model::parse_reply(body);
            REQUIRE(reply);
            if (!flooder.on_reply(*to, *reply, time))
                assessor.on_reply(*to, *reply, body.subspan(model::ProbeReply::size), look);
        }
        made.pool.give(frame);
    }
    void post_now(Link& over, Frame* frame) override {
        time += sent_in;
        ++sent[over.rail].messages;
        sent[over.rail].bytes += frame->bytes;
        sent[over.rail].cpu += std::chrono::nanoseconds(sent_in);
        under_way.emplace_back(&over == &link ? &mirror : &link, frame);
    }
    void model_changed(Link&) override {}
    [[nodiscard]] bool carries(std::uint32_t) const noexcept override { return false; }
    [[nodiscard]] base::Nanoseconds busy() const noexcept override { return time; }
};

LogGP surveyed_model(double L, double g, double G) {
    LogGP model;
    model.ranges[0].L.fixed = Nanos(L);
    model.ranges[0].g = Nanos(g);
    model.ranges[0].G.ns = G;
    return model;
}

const AssessOptions quickly{.n = 2, .sizes = 2, .rounds = 1, .max_bytes = 1024};

}  // namespace

TEST_CASE("survey: a policy is told a line through short messages and large ones", "[rails][survey]") {
    const auto cost = Survey::cost_by(surveyed_model(5000, 700, 2));
    CHECK(cost.latency == sched::to_ticks(5000.0));
    CHECK(cost.gap == sched::to_ticks(700.0));
    CHECK(cost.slope == sched::to_ticks(2.0));
    CHECK(cost.per_byte == sched::to_ticks(2.0));
    // No byte is for nothing, nor has any been brought back in time, whatever was measured.
    auto odd = surveyed_model(5000, 700, 0);
    odd.ranges[0].L.per_byte.ns = -0.1;
    CHECK(Survey::cost_by(odd).slope == 0);
    CHECK(Survey::cost_by(odd).per_byte == 1);
}

TEST_CASE("survey: models of live links are as traffic has corrected them, and say by how much", "[rails][survey]") {
    Surveyed f;
    f.link.assessed->model = surveyed_model(5000, 700, 8);
    CHECK(f.survey.models(f.peer, f.time).front().drift == 1);
    f.made.ledger.measured(0, sched::to_ticks(24.0));
    const auto models = f.survey.models(f.peer, f.time);
    REQUIRE(models.size() == 1);
    CHECK(models[0].rail == "eth0");
    CHECK(models[0].link == f.link.label);
    CHECK(models[0].model.ranges[0].G.ns == Approx(24));
    CHECK(models[0].drift == Approx(3));
    CHECK(f.link.assessed->model.ranges[0].G.ns == 8);  // as measured
    CHECK(f.survey.links(f.peer) == std::vector{f.link.slot});
    const auto stranger = f.made.peers.of_instance(77, no_rank);  // nobody has talked to it
    CHECK(f.survey.models(stranger, f.time).empty());
    CHECK(f.survey.links(stranger).empty());
    CHECK(f.survey.ended_models(stranger).empty());
}

TEST_CASE("survey: of links between the same two rails the last that ended is remembered", "[rails][survey]") {
    Surveyed f;
    Link& other = f.made.add_link(f.peer, 0);
    f.assessor.link_up(other, f.time);
    other.remote_rail = 1;
    const std::array both{f.link.slot, other.slot};
    const std::array alone{900e6, 940e6};
    const std::array shared{model::Bottleneck{.rails = {0, 1}, .bps = 941e6}};
    f.groups.note(f.peer, both, alone, shared);
    CHECK_FALSE(f.survey.models(f.peer, f.time)[0].spare.empty());
    for (const double L : {5000, 6000}) {
        f.link.assessed->model = surveyed_model(L, 700, 8);
        f.survey.keep(f.link, f.time);
    }
    f.survey.keep(other, f.time);
    const auto ended = f.survey.ended_models(f.peer);
    REQUIRE(ended.size() == 2);
    CHECK(ended[0].model.ranges[0].L.fixed == Nanos(6000));
    CHECK(ended[0].spare.empty());  // it gets nothing because it is over
    CHECK(ended[1].link == other.label);
}

TEST_CASE("survey: a measurement goes from 0 to 1, and its result is taken once", "[rails][survey]") {
    Surveyed f;
    CHECK(f.survey.measured(f.link.slot) == 1);
    f.survey.measure(f.link.slot, quickly);
    CHECK(f.survey.measured(f.link.slot) < 1);
    CHECK_FALSE(f.survey.take_assessment(f.link.slot, f.time));
    f.measure();
    CHECK(f.survey.measured(f.link.slot) == 1);
    const auto result = f.survey.take_assessment(f.link.slot, f.time);
    REQUIRE(result);
    CHECK(result->link.rail == "eth0");
    CHECK_FALSE(result->points.empty());
    CHECK(result->spent.messages > 0);
    CHECK_FALSE(f.survey.take_assessment(f.link.slot, f.time));
}

TEST_CASE("survey: each side knows what it has sent to measure a link, and how long that kept it", "[rails][survey]") {
    Surveyed f;
    const int how = GENERATE(0, 1, 2);
    f.survey.measure(f.link.slot, quickly);
    if (how == 1) {  // what was spent on it is spent though nothing comes of it
        static_cast<void>(f.assessor.step(f.time));
        f.survey.stop_measuring(f.link.slot);
    }
    f.measure();
    if (how == 2) {
        const std::array slots{f.link.slot};
        REQUIRE(f.survey.flood(slots));
        f.measure();
        f.sent[0].cpu = f.survey.probe_spent(0).cpu;  // a flood times no answers
    }
    for (const std::uint32_t rail : {0U, 1U}) {
        INFO("rail " << rail);
        const auto& spent = f.survey.probe_spent(rail);
        CHECK(spent.messages == f.sent[rail].messages);
        CHECK(spent.bytes == f.sent[rail].bytes);
        CHECK(spent.cpu == f.sent[rail].cpu);
        CHECK(spent.messages > 0);
    }
    const auto result = f.survey.take_assessment(f.link.slot, f.time);
    REQUIRE(result.has_value() == (how != 1));
    if (how != 0) return;
    // Afterwards the other side was told what had been found.
    CHECK(result->spent.messages + 1 == f.sent[0].messages);
    CHECK(result->spent.bytes < f.sent[0].bytes);
    CHECK(result->spent.cpu == f.sent[0].cpu - std::chrono::nanoseconds(Surveyed::sent_in));
}

TEST_CASE("survey: there is no result of what was stopped, or whose link died", "[rails][survey]") {
    Surveyed f;
    f.survey.measure(f.link.slot, quickly);
    const int how = GENERATE(0, 1, 2);
    if (how == 2) f.measure();  // it was over, and nobody had taken it
    if (how == 0) f.survey.stop_measuring(f.link.slot);
    if (how > 0) f.lose(f.link);
    CHECK(f.survey.measured(f.link.slot) == 1);
    CHECK_FALSE(f.survey.take_assessment(f.link.slot, f.time));
    f.survey.measure(f.link.slot, quickly);  // of a dead one it does nothing
    CHECK((f.survey.measured(f.link.slot) < 1) == (how == 0));
}

TEST_CASE("survey: a flood brings something when it is over, and nothing before, or when a link dies",
          "[rails][survey]") {
    Surveyed f;
    const std::array slots{f.link.slot};
    CHECK(f.survey.flooded() == 1);
    REQUIRE(f.survey.flood(slots));
    CHECK(f.survey.flooded() < 1);
    const int how = GENERATE(0, 1, 2);
    if (how == 0) f.measure();
    if (how == 2) f.lose(f.link);
    CHECK((f.survey.flooded() == 1) == (how != 1));
    CHECK((f.survey.end_flood() > 0) == (how == 0));
    CHECK(f.survey.end_flood() == 0);  // once
    const std::array both{f.mirror.slot, f.link.slot};
    if (how == 2) {
        const auto waiting = f.under_way.size();
        CHECK_FALSE(f.survey.flood(both));
        CHECK(f.under_way.size() == waiting);
    }
}

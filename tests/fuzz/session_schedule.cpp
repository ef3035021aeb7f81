#include "fuzz/session_schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "base/bytes.hpp"
#include "rails/rail_manager.hpp"
#include "transports/faulty_rail.hpp"
#include "transports/sim/fabric.hpp"

namespace railmux::test {
namespace {

using namespace rails;
namespace sim = transports::sim;

constexpr std::uint32_t most_rails = 3;
constexpr std::uint32_t most_steps = 60;
constexpr std::uint32_t most_bulk = 16 * 1024;  // bytes that a side puts in a schedule
constexpr std::uint32_t burst = Session::window + 500;
constexpr base::Nanoseconds shortest_to_arrive = 60 * base::second;
// An application is slower than acknowledgements (100 us): credit comes later, and alone.
constexpr base::Nanoseconds taken_after = 150 * base::microsecond;
constexpr base::Nanoseconds afterwards = 50 * base::millisecond;  // for what comes twice; the slowest rail takes 15 ms
constexpr std::uint64_t most_polls = 1'000'000;                   // of the end: more is a live lock

const sim::Fabric* clock_of = nullptr;
base::Nanoseconds now() { return clock_of->now(); }
/// For who reads the clock within a poll: that takes time.
base::Nanoseconds a_little_later() { return now() + 1; }

/// The content of frame `number`: its number, then bytes that follow from it.
std::byte content(std::uint32_t number, std::size_t at) {
    return static_cast<std::byte>(number * 31 + at * 7 + at / 251);
}

std::byte bulk_content(std::size_t at) { return content(7, at); }

class FaultyDevices final : public transports::Transport {
public:
    FaultyDevices(std::unique_ptr<Transport> inner, const transports::FaultPlan& plan)
        : inner_(std::move(inner)), plan_(plan) {}
    [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
    [[nodiscard]] std::vector<RailInfo> scan() override { return inner_->scan(); }
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override {
        auto plan = plan_;
        plan.seed += ++opened_;
        return std::make_unique<transports::FaultyRail>(inner_->open(device), plan);
    }

private:
    std::unique_ptr<Transport> inner_;
    transports::FaultPlan plan_;
    std::uint64_t opened_ = 0;
};

/// One of the two, and the model of what it has sent and heard.
class Side final : private Upper {
public:
    Side(sim::Fabric& fabric, const std::string& host, Identity self, std::string_view policy,
         const transports::FaultPlan& plan, bool checksum)
        : host_(host),
          other_rank_(1 - self.rank),
          rails_(transports_of(fabric, host, plan), {}, log_),
          policy_(sched::make_policy(policy, rails_.capacity())),
          manager(options_of(self, checksum), rails_, *policy_, *this, log_) {
        for (std::uint32_t rank = 0; rank < 2; ++rank) manager.peers().of_rank(rank);
        if (!manager.open_regions(other_rank_, place_, regions_)) note("the place for bulk cannot be opened");
    }

    void knows(const Side& other) {
        manager.learn(other.manager.own_address(other.host_, 1));
        for (const auto& open : other.regions_) {
            keys_.push_back({.rail = static_cast<std::uint8_t>(open.rail), .key = open.region.key});
        }
        target_.keys = keys_;
    }

    void say(std::size_t bytes, bool ordered) {
        send(bytes, ordered);
        manager.flush(now());
    }
    /// So many of the next frames that are released are followed by another, from within the manager.
    void follow(std::uint32_t frames) { following_ += frames; }
    /// So many of the next frames that are heard are answered at once.
    void answer(std::uint32_t frames) { answering_ += frames; }
    /// Bulk: so many bytes more of what there is, each to its place at the other side, once.
    void put(std::uint32_t bytes) {
        const auto begin = bulk_said_;
        bulk_said_ = std::min(bulk_said_ + bytes, most_bulk);
        for (auto at = begin; at < bulk_said_; ++at) source_[at] = bulk_content(at);
        go_on_with_bulk();
        manager.flush(now());
    }

    bool poll() {
        const bool any = manager.poll(now());
        if (untaken_ == 0 || now() < take_at_) return any;
        manager.consumed(other_rank_, std::exchange(untaken_, 0), now());
        return true;
    }

    /// What is not as it must be when everything that was said has had the time to arrive.
    [[nodiscard]] std::string missing(const Side& other) {
        if (heard_ordered_ != other.said_ordered) {
            return fmt::format("{} heard {} of {} ordered frames", host_, heard_ordered_, other.said_ordered);
        }
        if (heard_loose_.size() != other.said_loose) {
            return fmt::format("{} heard {} of {} other frames", host_, heard_loose_.size(), other.said_loose);
        }
        if (bulk_heard_ != other.bulk_said_) {
            return fmt::format("{} heard {} of {} bytes of bulk", host_, bulk_heard_, other.bulk_said_);
        }
        const auto credit = manager.consumed_by(other_rank_);
        if (const auto said = said_ordered + said_loose - said_before_; credit != said) {
            return fmt::format("{} knows that {} of its {} frames were taken", host_, credit, said);
        }
        return kept();
    }
    [[nodiscard]] base::Nanoseconds next_deadline() {
        const auto next = manager.next_deadline();
        return untaken_ == 0 ? next : std::min(next, take_at_);
    }
    [[nodiscard]] std::string kept() {
        if (!unreleased_.empty()) return fmt::format("{} frames of {} are not released", unreleased_.size(), host_);
        if (const auto kept = manager.pool().in_use(); kept != 0) {
            return fmt::format("{} of {}'s frames are not given back", kept, host_);
        }
        return {};
    }

    // Sessions end here only when all that was said has arrived: what else would be lost is nobody's fault.
    void expect_end() { end_ = End::expected; }
    [[nodiscard]] bool ended() const noexcept { return end_ == End::come; }
    /// The next session begins.
    void begin_anew() {
        end_ = End::never;
        said_before_ = said_ordered + said_loose;
    }
    void give_up() { manager.give_up(other_rank_, "so the schedule says", now()); }
    void expect_goodbye() { goodbyes_ = 0; }
    [[nodiscard]] bool heard_goodbye() const noexcept { return goodbyes_ == 1; }
    [[nodiscard]] bool heard_ordered_of(const Side& other) const noexcept {
        return heard_ordered_ == other.said_ordered;
    }
    [[nodiscard]] bool connected() const noexcept { return manager.connected(other_rank_); }
    /// Of bulk that had arrived whole and right: what was written over it afterwards. Without checksums that may be, with what
    /// is there already.
    [[nodiscard]] std::string spoiled() const {
        for (std::size_t at = 0; at < most_bulk; ++at) {
            if (heard_at_[at] && place_[at] != taken_)
                return fmt::format("{}: byte {} of bulk was written again", host_, at);
        }
        return {};
    }
    [[nodiscard]] const Traffic& traffic(std::size_t rail) { return manager.peers()[other_rank_].traffic[rail]; }
    [[nodiscard]] bool talked() { return manager.peers()[other_rank_].traffic != nullptr; }

    std::string wrong;  // the first thing that must not be
    std::uint32_t said_ordered = 0;
    std::uint32_t said_loose = 0;

private:
    void send(std::size_t bytes, bool ordered) {
        const auto number = ordered ? said_ordered++ : said_loose++;
        const auto size = FrameHeader::size + 4 + bytes;
        Frame* frame = manager.pool().take(size);
        frame->type = ordered ? FrameType::eager : FrameType::results;
        frame->flags = ordered ? frame_flag::ordered : std::uint8_t{0};
        frame->bytes = static_cast<std::uint32_t>(size);
        frame->token = std::uint64_t{number} << 1 | (ordered ? 1U : 0U) | std::uint64_t{1} << 40;
        ++unreleased_[frame->token];
        auto* body = frame->data() + FrameHeader::size;
        base::store(body, number);
        for (std::size_t i = 0; i < bytes; ++i) body[4 + i] = content(number, i);
        if (!manager.connected(other_rank_)) manager.want(other_rank_, now());
        sending_ = true;
        manager.send(other_rank_, frame, now());
        sending_ = false;
    }
    static Transports transports_of(sim::Fabric& fabric, const std::string& host, const transports::FaultPlan& plan) {
        Transports all;
        all.push_back(std::make_unique<FaultyDevices>(sim::make_transport(fabric, host), plan));
        return all;
    }
    static RailManager::Options options_of(Identity self, bool checksum) {
        RailManager::Options all;
        all.connector = {.self = self,
                         .key = make_job_key("job", "secret"),
                         .pair_limit = 50 * base::millisecond,
                         .checksum = checksum};
        all.assessor.probe = false;
        all.assessor.clock = &a_little_later;
        all.patience = 36'000 * base::second;  // sessions do not end here
        all.share_node = false;
        all.fragment = 1024;
        return all;
    }
    void note(std::string what) {
        if (wrong.empty()) wrong = host_ + ": " + std::move(what);
    }

    bool on_frame(std::uint32_t peer, const FrameHeader& header, std::span<const std::byte> body) override {
        if (peer != other_rank_) note(fmt::format("a frame of peer {}", peer));
        if (header.type == FrameType::fin) {
            on_fin(body);
            return true;
        }
        if (body.size() < 4) {
            note("a frame without its number");
            return true;
        }
        if (untaken_++ == 0) take_at_ = now() + taken_after;
        const auto number = base::load<std::uint32_t>(body.data());
        for (std::size_t i = 0; i + 4 < body.size(); ++i) {
            if (body[4 + i] != content(number, i)) {
                note(fmt::format("byte {} of frame {} is not what was sent", i, number));
                break;
            }
        }
        if (header.type == FrameType::eager) {
            if (number != heard_ordered_)
                note(fmt::format("ordered frame {} where {} must come", number, heard_ordered_));
            ++heard_ordered_;
        } else if (++heard_loose_[number] > 1) {
            note(fmt::format("frame {} came twice", number));
        }
        if (answering_ > 0 && end_ == End::never) {
            --answering_;
            say(number % 40, number % 2 == 0);
        }
        return true;
    }
    [[nodiscard]] std::span<std::byte> place_of(std::span<const std::byte> fin) {
        const auto offset = fin.size() == 8 ? base::load<std::uint32_t>(fin.data()) : most_bulk;
        const auto bytes = fin.size() == 8 ? base::load<std::uint32_t>(fin.data() + 4) : 0;
        if (offset < most_bulk && bytes > 0 && bytes <= most_bulk - offset)
            return std::span(place_).subspan(offset, bytes);
        note("a fin that nobody sent");
        return {};
    }
    void on_fin(std::span<const std::byte> body) {
        const auto bytes = place_of(body);
        if (bytes.empty()) return;
        const auto begin = static_cast<std::size_t>(bytes.data() - place_.data());
        for (auto at = begin; at < begin + bytes.size(); ++at) {
            if (heard_at_[at]) return note(fmt::format("byte {} of bulk came twice", at));
            if (place_[at] != bulk_content(at)) return note(fmt::format("byte {} of bulk is not what was sent", at));
            heard_at_[at] = true;
            place_[at] = taken_;
        }
        bulk_heard_ += static_cast<std::uint32_t>(bytes.size());
    }
    void go_on_with_bulk() {
        if (bulk_given_ == bulk_said_) return;
        if (!manager.connected(other_rank_)) manager.want(other_rank_, now());
        manager.offer_bulk(other_rank_, now());
    }
    void on_released(std::uint32_t, const Frame& frame) override {
        if (unreleased_.erase(frame.token) == 0) note(fmt::format("frame {:#x} was released twice", frame.token));
        // Within a send it would overtake that: whoever does so has no order to expect.
        if (following_ == 0 || sending_ || end_ != End::never) return;
        --following_;
        send(following_ % 50, following_ % 2 == 0);
    }
    std::span<const std::byte> closed_by(std::uint32_t, std::span<const std::byte> fin) noexcept override {
        const auto bytes = place_of(fin);
        const bool heard = !bytes.empty() && heard_at_[static_cast<std::size_t>(bytes.data() - place_.data())];
        return heard ? std::span<const std::byte>{} : bytes;
    }
    void on_sendable(std::uint32_t) override {}
    Frame* next_bulk(std::uint32_t, std::uint32_t, std::uint8_t, std::uint64_t most) override {
        const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, bulk_said_ - bulk_given_));
        if (bytes == 0) return nullptr;
        Frame* frame = manager.pool().take(FrameHeader::size + 8);
        frame->type = FrameType::fin;
        frame->bytes = FrameHeader::size + 8;
        frame->payload = frame->aux = bytes;
        frame->token = std::uint64_t{bulk_given_} | std::uint64_t{1} << 41;
        ++unreleased_[frame->token];
        frame->target = &target_;
        frame->put_offset = bulk_given_;
        frame->pieces[frame->piece_count++] = {source_.data() + bulk_given_, bytes, 0};
        base::store(frame->data() + FrameHeader::size, bulk_given_);
        base::store(frame->data() + FrameHeader::size + 4, bytes);
        bulk_given_ += bytes;
        return frame;
    }
    Frame* next_get(std::uint32_t, std::uint32_t, std::uint8_t, std::uint64_t) override { return nullptr; }
    void on_got(std::uint32_t, const Frame&, transports::WorkStatus) override {}
    std::uint64_t bulk_left(std::uint32_t, std::uint8_t) override { return bulk_said_ - bulk_given_; }
    void on_put_denied(std::uint64_t) override { note("a put was denied that nobody made"); }
    void on_link_lost(std::uint32_t, std::uint32_t) override { go_on_with_bulk(); }
    void on_rail_news(const rails::RailNews& news) override {
        static constexpr std::array<std::string_view, 4> unheard_of{
            "it broke the wire protocol", "it sent a malformed frame", "it sent a malformed probe",
            "it acknowledged what was never sent"};
        if (!news.up && std::ranges::find(unheard_of, news.cause) != unheard_of.end()) note(news.cause);
    }
    void on_peer_gone(std::uint32_t, ErrorCode code) override {
        if (end_ == End::never) note(fmt::format("the session ended as {}", to_string(code)));
        end_ = End::come;
    }
    void on_address_wanted(std::uint32_t peer) override {
        if (manager.peers()[peer].address.empty()) note("the other's address was forgotten");
    }
    void on_address_changed() override { note("the own address changed"); }
    void on_peer_left(std::uint32_t) override {
        if (++goodbyes_ != 1) note("the other left");
    }

    std::string host_;
    std::uint32_t other_rank_;
    enum class End : std::uint8_t { never, expected, come };
    End end_ = End::never;
    int goodbyes_ = 1;  // no more
    std::uint32_t following_ = 0;
    std::uint32_t answering_ = 0;
    bool sending_ = false;
    std::uint32_t said_before_ = 0;  // in earlier sessions
    std::uint32_t heard_ordered_ = 0;
    std::uint32_t untaken_ = 0;
    base::Nanoseconds take_at_ = 0;
    std::map<std::uint32_t, int> heard_loose_;
    std::map<std::uint64_t, int> unreleased_;
    static constexpr std::byte taken_{0xee};  // not what bulk_content says, mostly
    std::vector<std::byte> source_ = std::vector<std::byte>(most_bulk);
    std::vector<std::byte> place_ = std::vector<std::byte>(most_bulk);  // for the other's bulk
    std::vector<bool> heard_at_ = std::vector<bool>(most_bulk);
    std::uint32_t bulk_said_ = 0;
    std::uint32_t bulk_given_ = 0;
    std::uint32_t bulk_heard_ = 0;
    std::vector<RailManager::OpenRegion> regions_;
    std::vector<BulkTarget::Key> keys_;
    BulkTarget target_;
    base::Logger log_{base::LogLevel::off};
    RailSet rails_;
    std::unique_ptr<sched::Policy> policy_;

public:
    RailManager manager;  // last: its frames are released to this
};

struct Faults {
    const char* plan;
    int polls;  // after so many without anything, what faults hold back has been let go
    bool checksum = false;
};
constexpr std::array<Faults, 10> all_faults{{{"", 1},
                                             {"", 1},
                                             {"duplicate=10%", 2},
                                             {"delay=10%:7", 9},
                                             {"delay_work=10%:5,refuse=20%", 7},
                                             {"duplicate=5%,delay=20%:3,refuse=5%", 5},
                                             {"kill_work=2%,duplicate=10%", 2},
                                             {"kill_link=1%,delay=5%:9,delay_work=5%:3,stall=1%:20", 24},
                                             {"corrupt=5%", 1, true},
                                             {"corrupt=1%,duplicate=5%,delay=10%:3,kill_link=1%", 5, true}}};

class Schedule {
public:
    explicit Schedule(Choices choices) : choices_(choices) {
        clock_of = &fabric_;
        const auto few = choices_.below(6);  // rails are two or one now and then: the last dies more often
        rails_ = few == 4 ? 2 : few == 5 ? 1 : most_rails;
        for (std::uint32_t rail = 0; rail < rails_; ++rail) {
            const auto timing = timing_of(rail);
            for (const char* host : {"a", "b"}) {
                fabric_.add_rail(host, {.device = device(rail), .network = "net" + device(rail), .timing = timing});
            }
        }
        static constexpr std::array<const char*, 3> policies{"vft", "round_robin", "weighted_round_robin"};
        const auto* policy = policies[choices_.below(policies.size())];
        const auto& faults = all_faults[choices_.below(all_faults.size())];
        quiet_polls_ = faults.polls;
        checksum_ = faults.checksum;
        kills_ = checksum_ || std::string_view(faults.plan).find("kill") != std::string_view::npos;
        auto plan = transports::FaultPlan::parse(faults.plan);
        plan.seed = choices_.below(256);
        const std::uint64_t instance = choices_.below(2) == 0 ? 10 : 30;  // who goes first when both connect
        a_.emplace(fabric_, "a", Identity{.instance = instance, .rank = 0}, policy, plan, faults.checksum);
        b_.emplace(fabric_, "b", Identity{.instance = 20, .rank = 1}, policy, plan, false);  // one side is enough
        a_->knows(*b_);
        b_->knows(*a_);
    }
    ~Schedule() { clock_of = nullptr; }
    Schedule(const Schedule&) = delete;
    Schedule& operator=(const Schedule&) = delete;

    std::string play(ScheduleStats& stats) {
        auto result = say_some();
        if (result.empty() && choices_.below(4) == 1) result = begin_anew();
        if (result.empty() && choices_.below(4) == 1) result = leave();
        count(stats);
        return result;
    }

private:
    static std::string device(std::uint32_t rail) { return "eth" + std::to_string(rail); }
    sim::Timing timing_of(std::uint32_t rail) {
        static constexpr std::array<double, 4> latencies{1'000, 20'000, 300'000, 5e6};
        return sim::simple_timing(latencies[choices_.below(latencies.size())] * (rail + 1), 300, 300, 400, 1.0);
    }
    [[nodiscard]] std::string wrong() const { return a_->wrong.empty() ? b_->wrong : a_->wrong; }

    void step() {
        const auto rail = choices_.below(rails_);
        const auto here = "a/" + device(rail);
        const auto there = "b/" + device(rail);
        const auto time = base::Nanoseconds{1000} << choices_.below(16);
        switch (choices_.below(12)) {
            case 0:
            case 1:
            case 2: say(*a_); break;
            case 3:
            case 4: say(*b_); break;
            case 5: fabric_.cut(here, there, sim::Cut::loud); break;
            case 6:
                fabric_.cut(here, there, sim::Cut::silent);
                silent_[rail] = true;
                break;
            case 7: restore(rail); break;
            case 8: fabric_.set_timing(here, timing_of(rail)); break;
            case 9: run(choices_.below(2) == 0, choices_.below(2) == 0, time); break;
            default: run(true, true, time); break;
        }
    }
    void say(Side& side) {
        // More than the window has room for; not 0, which is what the ends of bytes are. Where links die by the hundredth step
        // it would hardly ever arrive.
        if (choices_.below(1024) == 200 && !kills_) {
            for (std::uint32_t i = 0; i < burst; ++i) side.say(0, i % 3 != 0);
            side.follow(100);
            return;
        }
        for (auto count = 1 + choices_.below(5); count > 0; --count) {
            const auto kind = choices_.below(16);
            if (kind == 15) {
                side.put(1 + choices_.below(3000));
                continue;
            }
            if (kind == 14) side.follow(5);
            if (kind == 13) side.answer(5);
            side.say(kind < 12 ? choices_.below(64) : kind * 700, kind % 3 != 0);
        }
    }
    /// Links that were cut silently stay dead, and in this layer nobody but the network tells: so it does.
    void restore(std::uint32_t rail) {
        if (std::exchange(silent_[rail], false)) {
            fabric_.cut("a/" + device(rail), "b/" + device(rail), sim::Cut::loud);
        }
        fabric_.restore("a/" + device(rail), "b/" + device(rail));
    }

    bool poll(bool a, bool b) {
        bool any = false;
        if (a) any = a_->poll() || any;
        if (b) any = b_->poll() || any;
        ++polls_;
        fabric_.advance(2);
        return any;
    }
    /// Until nothing happens any more at this moment, whatever faults hold back for some polls.
    void settle(bool a, bool b) {
        for (int quiet = 0; quiet < quiet_polls_ && polls_ < most_polls;) quiet = poll(a, b) ? 0 : quiet + 1;
    }
    void jump(bool a, bool b, base::Nanoseconds end) {
        auto next = std::min(end, fabric_.next_event().value_or(end));
        if (a) next = std::min(next, a_->next_deadline());
        if (b) next = std::min(next, b_->next_deadline());
        fabric_.advance_to(std::max(next, now() + 1));
    }
    void run(bool a, bool b, base::Nanoseconds time) {
        polls_ = 0;
        for (const auto end = now() + time; now() < end && polls_ < most_polls; jump(a, b, end)) settle(a, b);
    }

    std::string say_some() {
        const auto steps = 1 + choices_.below(most_steps);
        for (std::uint32_t i = 0; i < steps && !choices_.over() && wrong().empty(); ++i) step();
        return wrong().empty() ? end() : wrong();
    }
    /// One side gives the other up, and both begin another session.
    std::string begin_anew() {
        if (!a_->connected() || !b_->connected()) return {};
        for (auto* side : {&*a_, &*b_}) side->expect_end();
        (choices_.below(2) == 0 ? *a_ : *b_).give_up();
        const auto result = wait_for("the other side's session goes on", [&] { return a_->ended() && b_->ended(); });
        for (auto* side : {&*a_, &*b_}) side->begin_anew();
        return result.empty() ? say_some() : result;
    }
    /// One side says goodbye, and goes.
    std::string leave() {
        if (!a_->connected() || !b_->connected()) return {};
        for (auto* side : {&*a_, &*b_}) side->expect_end();
        const bool first = choices_.below(2) == 0;
        auto& leaver = first ? *a_ : *b_;
        auto& other = first ? *b_ : *a_;
        other.expect_goodbye();
        if (!kills_) {  // else the last link may die, and there is no other after a goodbye
            for (auto count = choices_.below(20); count > 0; --count) leaver.say(choices_.below(64), true);
        }
        leaver.manager.say_goodbye(now());
        auto result = wait_for("a goodbye is not heard", [&] { return other.heard_goodbye(); });
        if (!result.empty()) return result;
        if (!other.heard_ordered_of(leaver)) return "a goodbye came before what was said before it";
        leaver.manager.part(now());
        result = wait_for("links of who left stay", [&] { return leaver.manager.parted() && other.manager.parted(); });
        if (!result.empty()) return result;
        result = leaver.kept();
        return result.empty() ? other.kept() : result;
    }
    /// Longer where links go on dying: one that corrupts data rests for seconds each time, and may be the only one.
    [[nodiscard]] base::Nanoseconds time_to_arrive() const noexcept { return (kills_ ? 20 : 1) * shortest_to_arrive; }
    template <typename Done>
    std::string wait_for(const char* otherwise, Done done) {
        polls_ = 0;
        for (const auto limit = now() + time_to_arrive(); !done(); jump(true, true, limit)) {
            settle(true, true);
            if (!wrong().empty()) return wrong();
            if (now() >= limit) return std::string("hung: ") + otherwise;
            if (polls_ >= most_polls) return std::string("polls without end: ") + otherwise;
        }
        return wrong();
    }
    std::string end() {
        for (std::uint32_t rail = 0; rail < rails_; ++rail) restore(rail);
        polls_ = 0;
        const auto limit = now() + time_to_arrive();
        while (true) {
            settle(true, true);
            if (!wrong().empty()) return wrong();
            const auto what = missing();
            if (what.empty()) break;
            if (now() >= limit) return "hung: " + what;
            if (polls_ >= most_polls) return "polls without end: " + what;
            jump(true, true, limit);
        }
        run(true, true, afterwards);
        if (!wrong().empty() || !checksum_) return wrong();
        const auto spoiled = a_->spoiled();
        return spoiled.empty() ? b_->spoiled() : spoiled;
    }
    [[nodiscard]] std::string missing() {
        auto what = a_->missing(*b_);
        return what.empty() ? b_->missing(*a_) : what;
    }
    void count(ScheduleStats& stats) {
        for (auto* side : {&*a_, &*b_}) {
            stats.frames += side->said_ordered + side->said_loose;
            for (std::size_t rail = 0; side->talked() && rail < rails_; ++rail) {
                stats.resent += side->traffic(rail).resent_frames;
                stats.duplicates += side->traffic(rail).duplicate_frames;
                stats.links_lost += side->traffic(rail).links_lost;
                stats.corrupted += side->traffic(rail).corrupted_frames;
            }
        }
    }

    Choices choices_;
    sim::Fabric fabric_;
    std::uint32_t rails_ = most_rails;
    std::array<bool, most_rails> silent_{};
    int quiet_polls_ = 1;
    bool checksum_ = false;
    bool kills_ = false;
    std::uint64_t polls_ = 0;
    std::optional<Side> a_;
    std::optional<Side> b_;
};

}  // namespace

std::string play_schedule(Choices choices, ScheduleStats& stats) { return Schedule(choices).play(stats); }

}  // namespace railmux::test

// One of the two processes of a schedule (session_schedule.hpp): a rail manager whose rails go wrong, and the model of what it
// has sent and heard, which says what must not be.
//
// Threads: one.
// Lifetime: clock_of is set while there are sides.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "fuzz/quiet_rail.hpp"
#include "rails/rail_manager.hpp"
#include "rails/way_down.hpp"
#include "transports/faulty_rail.hpp"
#include "transports/sim/fabric.hpp"

namespace railmux::test {

using namespace rails;  // NOLINT: the schedules are about it
namespace sim = transports::sim;

constexpr std::uint32_t most_quiet = 128;       // bytes of a send that some rails copy,
constexpr std::uint32_t most_at_once = 4096;    // and of one that others do: more than small ones
constexpr std::uint32_t most_bulk = 16 * 1024;  // bytes that a side puts in a schedule
// An application is slower than acknowledgements (100 us): credit comes later, and alone.
constexpr base::Nanoseconds taken_after = 150 * base::microsecond;
constexpr base::Nanoseconds afterwards = 50 * base::millisecond;  // for what comes twice; the slowest rail takes 15 ms

inline const sim::Fabric* clock_of = nullptr;
inline base::Nanoseconds now() { return clock_of->now(); }
/// For who reads the clock within a poll: that takes time.
inline base::Nanoseconds a_little_later() { return now() + 1; }

/// The content of frame `number`: its number, then bytes that follow from it.
inline std::byte content(std::uint32_t number, std::size_t at) {
    return static_cast<std::byte>(number * 31 + at * 7 + at / 251);
}

inline std::byte bulk_content(std::size_t at) { return content(7, at); }

class FaultyDevices final : public transports::Transport {
public:
    FaultyDevices(std::unique_ptr<Transport> inner, const transports::FaultPlan& plan)
        : inner_(std::move(inner)), plan_(plan) {}
    [[nodiscard]] std::string_view name() const noexcept override { return inner_->name(); }
    [[nodiscard]] std::vector<RailInfo> scan() override { return inner_->scan(); }
    [[nodiscard]] std::unique_ptr<transports::Rail> open(const RailInfo& device) override {
        auto plan = plan_;
        plan.seed += ++opened_;
        auto rail = std::make_unique<transports::FaultyRail>(inner_->open(device), plan);
        if (plan.seed % 3 != 0) return rail;
        return std::make_unique<QuietRail>(std::move(rail), plan.seed % 2 == 0 ? most_quiet : most_at_once);
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
        if (!manager.regions().open(other_rank_, place_, regions_)) note("the place for bulk cannot be opened");
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
        const auto* talk = manager.peers()[other_rank_].talk.get();
        const auto credit = talk == nullptr ? 0 : talk->consumed_there;
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
        all.clock = &a_little_later;
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
        manager.offer_bulk(other_rank_);
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
    std::vector<OpenRegion> regions_;
    std::vector<BulkTarget::Key> keys_;
    BulkTarget target_;
    base::Logger log_{base::LogLevel::off};
    RailSet rails_;
    std::unique_ptr<sched::Policy> policy_;

public:
    RailManager manager;  // last: its frames are released to this
};

}  // namespace railmux::test

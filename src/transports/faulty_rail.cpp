#include "transports/faulty_rail.hpp"

#include <algorithm>
#include <utility>

namespace railmux::transports {

FaultyRail::FaultyRail(std::unique_ptr<Rail> rail, Plan plan)
    : rail_(std::move(rail)), plan_(std::move(plan)), traits_(rail_->traits()), random_(plan_.seed) {
    if (!plan_.empty()) traits_.quiet_max = 0;  // what is kept here, or lost, is done later
}

const FaultRule* FaultyRail::hit(Fault fault, std::uint64_t count) {
    for (const auto& rule : plan_.rules) {
        if (rule.fault != fault) continue;
        if (rule.at != 0 ? rule.at == count : random_() % 100 < rule.percent) return &rule;
    }
    return nullptr;
}

FaultyRail::LinkState* FaultyRail::find(LinkId link) {
    const auto found = links_.find(key(link));
    return found == links_.end() ? nullptr : &found->second;
}

bool FaultyRail::stalled(LinkId link) {
    const auto* state = find(link);
    return state != nullptr && polls_ < state->stalled_until;
}

bool FaultyRail::deferring(LinkId link) const {
    return std::ranges::any_of(deferred_, [&](const auto& deferred) { return deferred.work.link == link; });
}

void FaultyRail::lose_deferred(LinkId link) {
    for (const auto& deferred : deferred_) {
        if (deferred.work.link == link) lost_.push_back({link, deferred.work.cookie});
    }
    std::erase_if(deferred_, [&](const auto& deferred) { return deferred.work.link == link; });
}

/// Also ends stalls and delays: the caller's own step is not the network's to hold back.
void FaultyRail::disconnect(LinkId link) {
    if (auto* state = find(link)) {
        state->stalled_until = 0;
        state->closed = true;
    }
    for (auto& held : held_) {
        if (held.event.link == link) held.release = 0;
    }
    lose_deferred(link);
    rail_->disconnect(link);
}

/// After the count has gone up: the faults that come with a step.
void FaultyRail::step(LinkId link) {
    if (const auto* rule = hit(Fault::stall, steps())) {
        auto* state = find(link);
        if (state != nullptr && !state->closed) {
            state->stalled_until = rule->polls == 0 ? forever : polls_ + rule->polls;
        }
    }
    if (hit(Fault::kill_link, steps()) != nullptr) disconnect(link);
}

// --- Posting ---------------------------------------------------------------------------------------------------------

std::size_t FaultyRail::post(std::span<const Work> works) noexcept {
    if (plan_.empty()) {
        const auto taken = rail_->post(works);
        works_ += taken;
        return taken;
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
        if (!post_one(works[i])) return i;
    }
    return works.size();
}

bool FaultyRail::post_one(const Work& work) {
    if (hit(Fault::refuse, ++offers_) != nullptr) {
        refused_ = true;
        return false;
    }
    auto* state = find(work.link);
    if (state == nullptr || !(state->up || state->ended)) {
        if (rail_->post({&work, 1}) == 0) return false;
        ++works_;
        return true;
    }
    if (!take_over(work, *state)) return false;
    ++state->outstanding;
    ++works_;
    step(work.link);
    return true;
}

/// Gives the work to the rail, or keeps it, as the plan says. False: refused.
bool FaultyRail::take_over(const Work& work, LinkState& state) {
    if (state.ended) {
        lost_.push_back({work.link, work.cookie});
        return true;
    }
    if (state.outstanding >= traits().tx_depth) return false;
    if (hit(Fault::kill_work, works_ + 1) != nullptr) {
        disconnect(work.link);
        lost_.push_back({work.link, work.cookie});
        return true;
    }
    Work sent = work;
    Segment wrong;
    const bool corrupts = work.op != Op::get && payload_of(work) > 0 && hit(Fault::corrupt, works_ + 1) != nullptr;
    if (corrupts) {
        wrong = corrupt(work);
        sent.segments = {&wrong, 1};
    }
    const auto* rule = hit(Fault::delay_work, works_ + 1);
    if (rule != nullptr || stalled(work.link) || deferring(work.link)) {
        defer(sent, rule != nullptr ? polls_ + rule->polls : 0);
        return true;
    }
    const bool taken = rail_->post({&sent, 1}) == 1;
    if (corrupts && !taken) --corruptions_;
    return taken;
}

/// What goes instead of the bytes of the work.
Segment FaultyRail::corrupt(const Work& work) {
    auto& bytes = corrupted_.emplace_back(Corrupted{.link = work.link, .bytes = {}}).bytes;
    for (const auto& segment : work.segments) bytes.insert(bytes.end(), segment.data, segment.data + segment.size);
    const auto bit = random_() % (bytes.size() * 8);
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    ++corruptions_;
    return {bytes.data(), bytes.size(), 0};
}

void FaultyRail::defer(const Work& work, std::uint64_t release) {
    auto& deferred = deferred_.emplace_back();
    deferred.work = work;
    deferred.segments.assign(work.segments.begin(), work.segments.end());
    deferred.release = release;
}

void FaultyRail::post_deferred() {
    std::vector<LinkId> waiting;  // links whose later works must not overtake
    for (auto it = deferred_.begin(); it != deferred_.end();) {
        const auto link = it->work.link;
        it->work.segments = it->segments;
        const bool blocked = std::ranges::find(waiting, link) != waiting.end();
        if (!blocked && polls_ >= it->release && !stalled(link) && rail_->post({&it->work, 1}) == 1) {
            it = deferred_.erase(it);
        } else {
            if (!blocked) waiting.push_back(link);
            ++it;
        }
    }
}

// --- Polling ---------------------------------------------------------------------------------------------------------

std::size_t FaultyRail::poll(std::span<Event> events) noexcept {
    if (plan_.empty()) {
        const auto count = rail_->poll(events);
        events_ += count;
        return count;
    }
    ++polls_;
    lent_.clear();
    post_deferred();
    auto count = hand_out_lost(events);
    if (lost_.empty()) count += hand_out_held(events.subspan(count));  // else there is no room left
    const auto fresh = rail_->poll(events.subspan(count));
    for (std::size_t i = 0, first = count; i < fresh; ++i) {
        const auto event = events[first + i];
        if (!filter(event)) continue;
        events[count++] = event;
        handed_out(event);
    }
    return count;
}

std::size_t FaultyRail::hand_out_lost(std::span<Event> events) {
    std::size_t count = 0;
    for (; count < events.size() && !lost_.empty(); lost_.pop_front()) {
        const auto& lost = lost_.front();
        events[count] = {.status = WorkStatus::link_lost, .link = lost.link, .cookie = lost.cookie};
        handed_out(events[count++]);
    }
    return count;
}

std::size_t FaultyRail::hand_out_held(std::span<Event> events) {
    std::size_t count = 0;
    std::vector<LinkId> waiting;  // links whose later events must not overtake
    for (auto it = held_.begin(); it != held_.end() && count < events.size();) {
        const auto link = it->event.link;
        const bool of_rail = it->event.kind == EventKind::rail_down || it->event.kind == EventKind::rail_up;
        const bool blocked = of_rail ? it != held_.begin() : std::ranges::find(waiting, link) != waiting.end();
        if (blocked || polls_ < it->release || stalled(link)) {
            waiting.push_back(link);
            ++it;
            continue;
        }
        auto& lent = lent_.emplace_back(std::move(*it));
        it = held_.erase(it);
        lent.event.data = lent.data;
        lent.event.text = lent.text;
        events[count++] = lent.event;
        handed_out(lent.event);
    }
    return count;
}

/// What the plan does to an event of the rail; true when it goes on to the caller at once.
bool FaultyRail::filter(const Event& event) {
    if (event.kind == EventKind::rail_up) {
        if (held_.empty()) return true;
        hold(event, 0);
        return false;
    }
    if (event.kind == EventKind::rail_down) {
        for (auto& [id, state] : links_) state.stalled_until = 0;
        for (auto& held : held_) held.release = 0;
        if (held_.empty()) return true;
        hold(event, 0);
        return false;
    }
    if (event.kind == EventKind::moved) return true;  // of no link
    const auto link = event.link;
    ++events_;
    if (event.kind != EventKind::done) links_.try_emplace(key(link));
    const bool down = event.kind == EventKind::link_down;
    if (down) {
        lose_deferred(link);
        find(link)->up = false;
        find(link)->ended = true;
    }
    const bool waits = must_wait(event);
    const auto* delay = hit(Fault::delay, events_);
    const bool held = waits || delay != nullptr;
    if (held) hold(event, delay != nullptr ? polls_ + delay->polls : 0);
    if (event.kind == EventKind::received && hit(Fault::duplicate, ++frames_) != nullptr) hold(event, 0);
    step(link);
    return !held;
}

/// Behind what is held back of its link; and a link_down also behind the works it takes with it.
bool FaultyRail::must_wait(const Event& event) {
    const auto same = [&](const auto& other) { return other.link == event.link; };
    return stalled(event.link) || std::ranges::any_of(held_, same, &Held::event) ||
           (event.kind == EventKind::link_down && std::ranges::any_of(lost_, same));
}

void FaultyRail::hold(const Event& event, std::uint64_t release) {
    auto& held = held_.emplace_back();
    held.event = event;
    held.event.came = 0;  // it has not, yet
    held.data.assign(event.data.begin(), event.data.end());
    held.text = event.text;
    held.release = release;
}

void FaultyRail::handed_out(const Event& event) {
    auto* state = find(event.link);
    if (state == nullptr) return;
    if (event.kind == EventKind::done && state->outstanding > 0) --state->outstanding;
    if (event.kind == EventKind::link_up) state->up = true;
    if (event.kind != EventKind::link_down) return;
    links_.erase(key(event.link));
    std::erase_if(corrupted_, [&](const auto& corrupted) { return corrupted.link == event.link; });
}

int FaultyRail::arm() noexcept {
    // Nothing below will wake who was refused here, or waits for a number of polls. What the rail below refused, and
    // what is stalled without end, sleeps with the rail.
    const auto comes_by_polling = [&](LinkId link, std::uint64_t release) {
        return stalled(link) ? find(link)->stalled_until != forever : release > polls_;
    };
    if (std::exchange(refused_, false) || !lost_.empty()) return -1;
    for (const auto& held : held_) {
        if (comes_by_polling(held.event.link, held.release)) return -1;
    }
    for (const auto& deferred : deferred_) {
        if (comes_by_polling(deferred.work.link, deferred.release)) return -1;
    }
    return rail_->arm();
}

}  // namespace railmux::transports

// EventQueue: the events of a rail that wait for its next poll: works that are done, and events with texts or bytes of their
// own, which it keeps until the poll after the one that handed them out.
//
// Threads: one engine at a time, as the rail that owns it.
// Lifetime: what an event of hand_out() lends is good until take_back().
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transports/link_table.hpp"
#include "transports/transport.hpp"

namespace railmux::transports {

/// The events of one poll, being filled.
struct Batch {
    std::span<Event> events;
    std::size_t count = 0;

    [[nodiscard]] bool full() const noexcept { return count == events.size(); }
    Event& next(EventKind kind, LinkId link) noexcept {
        Event& event = events[count++];
        event = Event{.kind = kind, .link = link};
        return event;
    }
};

class EventQueue {
public:
    EventQueue() { dones_.reserve(first_dones); }

    [[nodiscard]] bool empty() const noexcept { return waiting_ == 0; }

    void done(LinkId link, std::uint64_t cookie, WorkStatus status) {
        dones_.push_back({link, cookie, status});
        ++waiting_;
    }

    /// Copies text and data; those of the event itself are not looked at.
    void tell(const Event& event, std::string_view text = {}, std::span<const std::byte> data = {}) {
        told_.push_back({event, std::string(text), {data.begin(), data.end()}});
        ++waiting_;
    }

    /// Takes back the request of a link, of which nobody above has heard then. False: it was handed out, or never came.
    [[nodiscard]] bool withdraw_request(LinkId link) {
        const auto withdrawn = std::erase_if(told_, [&](const Told& told) {
            return told.event.kind == EventKind::connect_request && told.event.link == link;
        });
        waiting_ -= withdrawn;
        return withdrawn > 0;
    }

    /// As many as there is room for. Dones first: they come before the link_down of their link.
    template <typename Link>
    void hand_out(Batch& batch, LinkTable<Link>& links) {
        while (done_at_ < dones_.size() && !batch.full()) {
            const auto& done = dones_[done_at_++];
            --waiting_;
            auto& event = batch.next(EventKind::done, done.link);
            event.cookie = done.cookie;
            event.status = done.status;
            if (Link* link = links.find(done.link); link != nullptr && link->undone > 0) --link->undone;
        }
        if (done_at_ < dones_.size()) return;
        dones_.clear();
        done_at_ = 0;
        while (!told_.empty() && !batch.full()) {
            lent_.push_back(std::move(told_.front()));
            told_.pop_front();
            --waiting_;
            auto& told = lent_.back();
            told.event.text = told.text;
            told.event.data = told.data;
            batch.events[batch.count++] = told.event;
            if (told.event.kind == EventKind::link_down) links.retire(told.event.link);
        }
    }

    /// With the next poll: nobody looks any more at what was handed out.
    template <typename Link>
    void take_back(LinkTable<Link>& links) {
        if (!lent_.empty()) lent_.clear();
        links.reuse_retired();
    }

private:
    static constexpr std::size_t first_dones = 1024;  // four links with all that they take: after that it grows

    struct Done {
        LinkId link;
        std::uint64_t cookie = 0;
        WorkStatus status = WorkStatus::ok;
    };
    struct Told {
        Event event;
        std::string text;
        std::vector<std::byte> data;
    };
    std::vector<Done> dones_;  // from done_at_ on, not handed out
    std::size_t done_at_ = 0;
    std::deque<Told> told_;    // not handed out
    std::size_t waiting_ = 0;  // of both: asked with each look
    std::deque<Told> lent_;    // handed out
};

}  // namespace railmux::transports

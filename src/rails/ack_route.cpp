#include "rails/ack_route.hpp"

#include <algorithm>
#include <array>

#include "base/bytes.hpp"

namespace railmux::rails {

namespace {
// Tells wide rails from narrow ones: at 1 Gbit/s they take 131 us.
constexpr std::uint64_t wide_bytes = 16 * 1024;
// So well is a latency known under traffic.
constexpr sched::Ticks known_to = sched::to_ticks(10 * base::microsecond);
}  // namespace

Frame* ack_frame(FramePool& pool, const Session& session, std::optional<std::uint32_t> timed, base::Nanoseconds now) {
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto sack_bytes = session.write_sack(sack);
    const auto time_bytes = timed ? sizeof(std::uint64_t) : 0;
    Frame* frame = pool.take(FrameHeader::size + time_bytes + sack_bytes);
    frame->type = FrameType::ack;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + time_bytes + sack_bytes);
    frame->acked = true;  // it is released when it is done
    // A selective acknowledgement counts from the number in its header, so that number may not be stamped anew.
    FrameHeader header{.type = FrameType::ack, .aux = session.ack()};
    auto* body = frame->data() + FrameHeader::size;
    if (timed) {
        header.flags = frame->flags = frame_flag::timed;
        header.seq = *timed;
        base::store(body, static_cast<std::uint64_t>(now));
    }
    write_header(frame->data(), header);
    std::copy_n(sack.begin(), sack_bytes, body + time_bytes);
    return frame;
}

Link& AckRoute::next(Conversation& talk, base::Nanoseconds now) noexcept {
    if (talk.links.size() == 1 || !policy_.predicts()) return least_busy(talk);
    ledger_.refresh(talk, now);
    std::uint64_t brought = 0;
    for (const auto slot : talk.links) brought += links_.at(slot).traffic->received_bytes;
    talk.inflow.noted(brought);
    const auto usual = std::ranges::find(talk.links, talk.last_link) - talk.links.begin();
    const auto place = best(talk.candidates, talk.inflow.data(), static_cast<std::size_t>(usual));
    const auto& candidate = talk.candidates[place];
    const auto waits = policy_.delivery(candidate, FrameHeader::size, now) - candidate.cost.latency;
    return waits > sched::to_ticks(patience_) ? least_busy(talk) : links_.at(talk.links[place]);
}

std::size_t AckRoute::best(std::span<const sched::Candidate> candidates, bool data, std::size_t usual) noexcept {
    const auto bytes = data ? wide_bytes : 0;
    const auto idle = [&](const sched::Candidate& candidate) {
        const bool comes_there = usual < candidates.size() && &candidate == &candidates[usual];
        const auto preferred = !data && comes_there ? known_to : 0;
        return candidate.cost.latency + sched::times(bytes, candidate.cost.per_byte) - preferred;
    };
    const auto before = [&](const sched::Candidate& one, const sched::Candidate& other) {
        return one.spare != other.spare ? other.spare : idle(one) < idle(other);
    };
    return static_cast<std::size_t>(std::ranges::min_element(candidates, before) - candidates.begin());
}

Link& AckRoute::least_busy(const Conversation& talk) noexcept {
    const auto before = [&](std::uint32_t a, std::uint32_t b) {
        const Link& one = links_.at(a);
        const Link& other = links_.at(b);
        const auto left_out = [&](const Link& link) {
            const auto& candidate = talk.candidates[link.place];
            return candidate.spare && candidate.by_processors;
        };
        if (left_out(one) != left_out(other)) return left_out(other);
        return one.queued_bytes < other.queued_bytes;
    };
    return links_.at(*std::ranges::min_element(talk.links, before));
}

}  // namespace railmux::rails

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

constexpr std::size_t told_bytes = ArrivalTimes::size + ShownRate::size;

/// An acknowledgement with so many bytes of something else in front of its bits.
Frame* ack_frame(FramePool& pool, const Session& session, FrameHeader header, std::size_t in_front) {
    std::array<std::byte, Session::max_sack_bytes> sack;
    const auto sack_bytes = session.write_sack(sack);
    Frame* frame = pool.take(FrameHeader::size + in_front + sack_bytes);
    header.type = frame->type = FrameType::ack;
    header.aux = session.ack();  // its bits count from here, so this number may not be stamped anew
    frame->flags = header.flags;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + in_front + sack_bytes);
    frame->acked = true;  // it is released when it is done
    write_header(frame->data(), header);
    std::copy_n(sack.begin(), sack_bytes, frame->data() + FrameHeader::size + in_front);
    return frame;
}
}  // namespace

Frame* ack_frame(FramePool& pool, const Session& session) { return ack_frame(pool, session, {}, 0); }

Frame* time_frame(FramePool& pool, const Session& session, std::uint32_t seq, const ArrivalTimes& times,
                  const ShownRate& rate) {
    Frame* frame = ack_frame(pool, session, {.flags = frame_flag::timed, .seq = seq}, told_bytes);
    times.write(frame->data() + FrameHeader::size);
    rate.write(frame->data() + FrameHeader::size + ArrivalTimes::size);
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
    const auto arrives = [&](const sched::Candidate& one) { return policy_.delivery(one, FrameHeader::size, now); };
    if (arrives(candidate) - candidate.cost.latency <= sched::to_ticks(patience_)) return links_.at(talk.links[place]);
    const auto sooner = [&](const sched::Candidate& one, const sched::Candidate& other) {
        return one.spare != other.spare ? other.spare : arrives(one) < arrives(other);
    };
    const auto first = std::ranges::min_element(talk.candidates, sooner) - talk.candidates.begin();
    return links_.at(talk.links[static_cast<std::size_t>(first)]);
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

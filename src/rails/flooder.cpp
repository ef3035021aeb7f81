#include "rails/flooder.hpp"

#include <algorithm>

namespace railmux::rails {

void Flooder::start(std::span<const std::uint32_t> links) {
    std::vector<std::uint64_t> largest;
    senders_.clear();
    for (const auto slot : links) {
        Link& link = links_.at(slot);
        assessor_.abandon(link);  // the mirror answers one at a time
        largest.push_back(assessor_.largest_probe(link.rail));
        senders_.push_back({.slot = slot, .id = link.id});
    }
    flood_.emplace(largest);
    for (std::size_t i = 0; i < senders_.size(); ++i) {
        for (std::uint32_t n = 0; n < model::Flood::trains; ++n) send_train(i);
    }
}

void Flooder::send_train(std::size_t place) {
    Link& link = links_.at(senders_[place].slot);
    const auto working = assessor_.spending(link.rail);
    const auto train = flood_->next(place);
    for (std::uint32_t i = 0; i < train.n; ++i) {
        const auto head = model::encode(model::ProbeRequest{.train = train.id | flood_train,
                                                            .n = static_cast<std::uint16_t>(train.n),
                                                            .index = static_cast<std::uint16_t>(i),
                                                            .bytes = static_cast<std::uint32_t>(train.bytes)});
        assessor_.post(link, probe_frame(pool_, FrameType::probe, head, assessor_.payload(train.bytes)));
    }
}

bool Flooder::on_reply(const Link& link, const model::ProbeReply& reply, base::Nanoseconds at) {
    if ((reply.train & flood_train) == 0) return false;
    if (!flood_) return true;  // of one that was given up
    const auto sender = std::ranges::find(senders_, link.slot, &Sender::slot);
    if (sender == senders_.end() || sender->id != link.id) return true;
    const auto place = static_cast<std::size_t>(sender - senders_.begin());
    const auto awaited = flood_->awaited(place);
    if (awaited == 0 || reply.train != (awaited | flood_train)) return true;
    flood_->answered(place, at);
    if (!flood_->over()) send_train(place);
    return true;
}

void Flooder::link_down(const Link& link) noexcept {
    if (flood_ && std::ranges::find(senders_, link.slot, &Sender::slot) != senders_.end()) flood_.reset();
}

void Flooder::stop(std::uint32_t peer) noexcept {
    if (flood_ && links_.at(senders_.front().slot).peer == peer) flood_.reset();
}

double Flooder::end() noexcept {
    const auto bps = flood_ && flood_->progress() >= 1 ? flood_->bps() : 0;
    flood_.reset();
    return bps;
}

}  // namespace railmux::rails

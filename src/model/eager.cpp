#include "model/eager.hpp"

#include <algorithm>

namespace railmux::model {

namespace {

constexpr std::uint64_t step = 512;
// As for another rail (docs/scheduling.md): what is predicted to be little better may be worse.
constexpr double margin = 1.05;
// What a rendezvous costs the processors of both ends is not in a model of messages that each of them awaits: 64 KiB at 1
// Gbit/s take 8 % longer, where announcement and answer are 4 %.
constexpr double unasked_margin = 1.01;

/// The place of the range of messages larger than `most`, if it begins about there: a change may be found a step of sizes early
/// or late. Else 0.
std::size_t larger(const LogGP& model, std::uint64_t most) noexcept {
    for (std::size_t i = 1; i < model.ranges.size(); ++i) {
        const auto last = model.ranges[i - 1].up_to_bytes;  // of the sizes before
        if (last >= most - most / 8 && last < most + most / 2) return i;
    }
    return 0;
}

/// As if the parameters of `range` held for all sizes.
Nanos delivery(const LogGP& model, const ProtocolRange& range, std::uint64_t bytes) noexcept {
    return std::max(
        Nanos(0), range.L.of(bytes) + range.o_s.of(bytes) + range.o_r.of(bytes) + range.G.of(bytes - 1) + model.jitter);
}

/// What a message takes by each.
class Ways {
public:
    Ways(const LogGP& model, const EagerCosts& costs, const EagerBounds& bounds) noexcept
        : model_(model),
          large_(larger(model, bounds.frame)),
          copying_(costs.by_processors ? PerByte{} : costs.copying),
          frame_(bounds.frame),
          at_once_(bounds.at_once),
          part_(costs.part),
          one_(model.predict(1).delivery) {
        const auto& small = model.range(1);
        asking_ = 2 * one_ + small.o_s.of(1) + small.o_r.of(1) + costs.opening;
    }
    [[nodiscard]] Nanos eager(std::uint64_t bytes) const noexcept {
        const auto carried = carried_of(bytes);
        const bool as_before = large_ > 0 && bytes > model_.ranges[large_ - 1].up_to_bytes;
        return (as_before ? delivery(model_, model_.ranges[large_ - 1], carried) : model_.predict(carried).delivery) +
               (bytes > frame_ && (bytes > at_once_ || part_ < 1) ? 1 : 2) * copying_.of(bytes);
    }
    [[nodiscard]] Nanos rendezvous(std::uint64_t bytes) const noexcept {
        const auto carried = carried_of(bytes);
        return asking_ + (large_ > 0 ? std::max(one_, delivery(model_, model_.ranges[large_], carried))
                                     : model_.predict(carried).delivery);
    }

private:
    [[nodiscard]] std::uint64_t carried_of(std::uint64_t bytes) const noexcept {
        return std::max<std::uint64_t>(static_cast<std::uint64_t>(part_ * static_cast<double>(bytes)), 1);
    }

    const LogGP& model_;
    std::size_t large_;  // the place of the range of those that no frame holds, if it is one of its own
    PerByte copying_;
    std::uint64_t frame_;
    std::uint64_t at_once_;
    double part_;
    Nanos one_;
    Nanos asking_{0};
};

}  // namespace

std::uint64_t eager_max(const LogGP& model, const EagerCosts& costs, EagerBounds bounds) noexcept {
    const Ways ways(model, costs, bounds);
    const auto rendezvous_pays = [&](std::uint64_t bytes) {
        return margin * ways.rendezvous(bytes) < ways.eager(bytes);
    };
    auto limit = bounds.most;
    while (limit > bounds.least && rendezvous_pays(limit)) limit -= std::min(step, limit - bounds.least);
    return limit;
}

std::uint64_t unasked_max(const LogGP& model, const EagerCosts& costs, EagerBounds bounds) noexcept {
    const Ways ways(model, costs, bounds);
    const auto eager_pays = [&](std::uint64_t bytes) {
        return unasked_margin * ways.eager(bytes) < ways.rendezvous(bytes);
    };
    auto limit = bounds.most;
    while (limit > bounds.frame && !eager_pays(limit)) limit -= std::min(step, limit - bounds.frame);
    return limit > bounds.frame ? limit : 0;
}

}  // namespace railmux::model

#include "model/eager.hpp"

#include <algorithm>

namespace railmux::model {

namespace {

constexpr std::uint64_t step = 512;
// As for another rail (docs/scheduling.md): what is predicted to be little better may be worse.
constexpr double margin = 1.05;

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

}  // namespace

std::uint64_t eager_max(const LogGP& model, const EagerCosts& costs, EagerBounds bounds) noexcept {
    const auto& small = model.range(1);
    const auto one = model.predict(1).delivery;
    const auto asking = 2 * one + small.o_s.of(1) + small.o_r.of(1) + costs.opening;
    const auto large = larger(model, bounds.most);
    const auto saved = costs.by_processors ? PerByte{} : costs.copying;
    const auto rendezvous_pays = [&](std::uint64_t bytes) {
        auto frame = model.predict(bytes).delivery;
        auto bulk = frame;
        if (large > 0) {
            const auto& before = model.ranges[large - 1];
            if (bytes > before.up_to_bytes) frame = delivery(model, before, bytes);
            bulk = std::max(one, delivery(model, model.ranges[large], bytes));
        }
        return margin * (asking + bulk) < frame + 2 * saved.of(bytes);
    };
    auto limit = bounds.most;
    while (limit > bounds.least && rendezvous_pays(limit)) limit -= std::min(step, limit - bounds.least);
    return limit;
}

}  // namespace railmux::model

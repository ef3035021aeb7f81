#include "model/eager.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/fastest.hpp"

namespace railmux::model {

namespace {

constexpr std::uint64_t step = 512;
// As for another rail (docs/scheduling.md): what is predicted to be little better may be worse.
constexpr double margin = 1.05;

/// The range of messages larger than `most`, if it begins about there: a change may be found a step of sizes early or late.
const ProtocolRange* larger(const LogGP& model, std::uint64_t most) noexcept {
    for (std::size_t i = 1; i < model.ranges.size(); ++i) {
        const auto last = model.ranges[i - 1].up_to_bytes;  // of the sizes before
        if (last >= most - most / 8 && last < most + most / 2) return &model.ranges[i];
    }
    return nullptr;
}

/// As if the parameters of `range` held for all sizes.
Nanos delivery(const LogGP& model, const ProtocolRange& range, std::uint64_t bytes) noexcept {
    return std::max(
        Nanos(0), range.L.of(bytes) + range.o_s.of(bytes) + range.o_r.of(bytes) + range.G.of(bytes - 1) + model.jitter);
}

}  // namespace

std::uint64_t eager_max(const LogGP& model, PerByte copying, EagerBounds bounds) noexcept {
    const auto& small = model.range(1);
    const auto asking = 2 * model.predict(1).delivery + small.o_s.of(1) + small.o_r.of(1);
    const auto* const large = larger(model, bounds.most);
    for (auto bytes = bounds.least; bytes < bounds.most; bytes += step) {
        const auto next = bytes + step;
        const auto frame = model.predict(next).delivery;
        const auto bulk = large == nullptr ? frame : delivery(model, *large, next);
        if (margin * (asking + bulk) < frame + 2 * copying.of(next)) return bytes;
    }
    return bounds.most;
}

PerByte measure_copying() {
    constexpr std::size_t bytes = 16 * 1024;
    constexpr int rounds = 5;  // the first finds the memory cold
    std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes);
    return {base::fastest_ns(rounds, [&] { std::memcpy(to.data(), from.data(), bytes); }) / bytes};
}

}  // namespace railmux::model

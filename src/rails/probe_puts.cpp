#include "rails/probe_puts.hpp"

#include <algorithm>
#include <utility>

namespace railmux::rails {

std::unique_ptr<ProbePuts> ProbePuts::open(transports::Rail& rail) {
    const auto& traits = rail.traits();
    if (!traits.put || traits.max_put == 0) return nullptr;
    const auto bytes = std::min<std::size_t>(model::ProbeMemory::largest, traits.max_put);
    std::unique_ptr<ProbePuts> puts(new ProbePuts(rail, bytes));
    return puts->in_.registered() && puts->out_.registered() ? std::move(puts) : nullptr;
}

void ProbePuts::know(const model::ProbeMemory& there, std::uint8_t remote_rail) noexcept {
    key_ = {.rail = remote_rail, .key = {there.id, there.secret}};
    target_.keys = {&key_, 1};
    bytes_there_ = std::min<std::uint64_t>(there.bytes, bytes_);
    ending_ = ended_there_ = false;
}

void ProbePuts::attach(Frame& frame, std::uint64_t bytes, std::uint32_t rail) noexcept {
    frame.pieces[0] = {out_.data(), static_cast<std::size_t>(bytes), out_.region().local};
    frame.piece_count = 1;
    frame.registered_with = static_cast<std::uint8_t>(rail);
    frame.payload = static_cast<std::uint32_t>(bytes);
    frame.target = &target_;
    frame.put_offset = 0;
    ++under_way_;
}

}  // namespace railmux::rails

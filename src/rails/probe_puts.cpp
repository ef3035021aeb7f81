#include "rails/probe_puts.hpp"

#include <algorithm>

namespace railmux::rails {

std::optional<ProbePuts::Memory> ProbePuts::registered(transports::Rail& rail, std::size_t bytes,
                                                       transports::Access access) {
    auto pages = std::make_unique<Page[]>((bytes + sizeof(Page) - 1) / sizeof(Page));
    const auto region = rail.add_region({pages[0].bytes.data(), bytes}, access);
    if (!region) return std::nullopt;
    return Memory{std::move(pages), region.value()};
}

std::unique_ptr<ProbePuts> ProbePuts::open(transports::Rail& rail) {
    const auto& traits = rail.traits();
    if (!traits.put || traits.max_put == 0) return nullptr;
    const auto bytes = std::min<std::size_t>(model::ProbeMemory::largest, traits.max_put);
    auto in = registered(rail, bytes, transports::Access::remote_write);
    if (!in) return nullptr;
    auto out = registered(rail, bytes, transports::Access::local);
    if (!out) {
        rail.drop_region(in->region);
        return nullptr;
    }
    return std::unique_ptr<ProbePuts>(new ProbePuts(rail, std::move(*in), std::move(*out), bytes));
}

void ProbePuts::know(const model::ProbeMemory& there, std::uint8_t remote_rail) noexcept {
    key_ = {.rail = remote_rail, .key = {there.id, there.secret}};
    target_.keys = {&key_, 1};
    bytes_there_ = std::min<std::uint64_t>(there.bytes, bytes_);
    ending_ = ended_there_ = false;
}

void ProbePuts::attach(Frame& frame, std::uint64_t bytes, std::uint32_t rail) noexcept {
    frame.pieces[0] = {out_.pages[0].bytes.data(), static_cast<std::size_t>(bytes), out_.region.local};
    frame.piece_count = 1;
    frame.registered_with = static_cast<std::uint8_t>(rail);
    frame.payload = static_cast<std::uint32_t>(bytes);
    frame.target = &target_;
    frame.put_offset = 0;
    ++under_way_;
}

}  // namespace railmux::rails

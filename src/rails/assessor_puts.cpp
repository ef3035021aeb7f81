// Assessor, large messages: those of a full probe are put into their places, as an application's are. Each end opens memory
// for that and tells the other, unless that has told first and knows already; who has measured says that he needs it no more,
// and whoever hears that without measuring himself closes his and says the same.
#include "rails/assessor.hpp"

#include <algorithm>
#include <array>

namespace railmux::rails {

namespace {

// Of a message there and back, so that its answer comes in time on slow rails, too.
constexpr base::Nanoseconds longest_message = base::second / 8;

}  // namespace

/// Whether it is known by now where large messages may be put, or that they may not.
bool Assessor::puts_settled(Link& link, Probe& probe, base::Nanoseconds now) {
    auto& puts = link.probe_puts;
    const bool late = now >= probe.large_until;
    if (puts != nullptr && puts->ending() && !late)
        return false;  // of the probe before: it is anew that they are opened
    if (puts == nullptr) {
        const auto working = spending(link.rail);
        puts = ProbePuts::open(*rails_[link.rail].rail);
        if (puts != nullptr) {
            tell_memory(link, puts->here());
            return false;
        }
    }
    if (puts != nullptr && puts->bytes_there() == 0 && !late) return false;
    if (puts != nullptr && puts->bytes_there() > 0 && !puts->ending()) use_puts(link, probe);
    probe.large = 0;
    return true;
}

void Assessor::use_puts(Link& link, Probe& probe) {
    auto options = probe.prober.options();
    const double per_byte = std::max(options.expected.range(options_.eager_max).G.ns, 1e-3);
    const auto in_time = static_cast<std::uint64_t>(static_cast<double>(longest_message) / (2 * per_byte));
    options.large_bytes = std::min({probe.large, link.probe_puts->bytes_there(), in_time});
    probe.prober = model::Prober(std::move(options));
}

bool Assessor::by_put(const Link& link, std::uint64_t bytes) const noexcept {
    return link.probe_puts != nullptr && bytes > options_.eager_max && bytes <= link.probe_puts->bytes_there();
}

Frame* Assessor::message(Link& link, FrameType type, std::span<const std::byte> head, std::uint64_t bytes, bool put) {
    Frame* made = probe_frame(pool_, type, head, payload(put ? 0 : bytes));
    if (put) link.probe_puts->attach(*made, bytes, link.rail);
    return made;
}

void Assessor::put_done(Link& link) noexcept {
    link.probe_puts->done();
    if (link.probe_puts->over()) link.probe_puts.reset();
}

void Assessor::tell_memory(Link& link, const model::ProbeMemory& memory) {
    post(link, probe_frame(pool_, FrameType::probe_memory, model::encode(memory)));
}

/// This end measures no more.
void Assessor::end_puts(Link& link) {
    if (link.probe_puts == nullptr || link.probe_puts->ending()) return;
    link.probe_puts->end();
    tell_memory(link, {});
}

bool Assessor::on_memory(Link& link, std::span<const std::byte> body) {
    const auto there = model::parse_memory(body);
    if (!there) return false;
    if (link.assessed == nullptr || link.asks_too_much()) return true;
    const auto working = spending(link.rail);
    auto& puts = link.probe_puts;
    if (there->bytes > 0) {
        const bool told = puts != nullptr && !puts->ending();
        if (puts == nullptr) puts = ProbePuts::open(*rails_[link.rail].rail);
        if (puts != nullptr) puts->know(*there, link.remote_rail);
        if (!told) tell_memory(link, puts == nullptr ? model::ProbeMemory{} : puts->here());
        return true;
    }
    if (puts == nullptr) return true;
    auto* probe = link.assessed->probe.get();
    if (probe != nullptr && probe->full && !puts->ending()) {  // the other end's answers still need it
        if (puts->bytes_there() > 0) return true;
        probe->large = 0;  // it cannot
    }
    if (!puts->ended_there()) tell_memory(link, {});
    puts->end_there();
    if (puts->over()) puts.reset();
    return true;
}

}  // namespace railmux::rails

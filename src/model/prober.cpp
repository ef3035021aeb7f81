#include "model/prober.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "model/probe_wire.hpp"
#include "model/rest.hpp"

namespace railmux::model {

namespace {

// Between two trains, however slow the rail.
constexpr base::Nanoseconds longest_rest = base::second;
constexpr std::uint32_t warm_ups = 4;

/// Of a step whose samples are interrupted, in succession.
constexpr std::uint32_t retries_allowed(ProbeKind kind) noexcept {
    return kind == ProbeKind::full ? 3 : kind == ProbeKind::quick ? 1 : 0;
}

constexpr std::uint32_t max_lost = 3;       // then something is wrong with the sizes that were lost, and those beyond
constexpr std::uint32_t max_lost_full = 9;  // each takes a second
// A quick probe is not believed that a byte takes longer than so many times G besides: a switch that stores messages whole and
// a copy at each end take about as long together.
constexpr double most_besides = 2;
constexpr int patience = 20;                // quick: its time limit so many times over, if processes hardly get to run
constexpr std::uint32_t denser_stages = 3;  // full: the grid, and twice denser,
constexpr std::uint32_t max_stages = 5;     // and where a change was found elsewhere only then
// Of the messages of a train on a rail that lets nothing pass at once: answers are not waited for for long.
constexpr double longest_train_ns = base::second / 4;
constexpr std::uint32_t shortest_train = 2;
// What a network carries with a message, about: headers, ours and its own, and what acknowledges it.
constexpr std::uint64_t around_message = 190;
constexpr double fast = 1;  // ns a byte: a round of large messages, 60 MB, takes 60 ms

std::uint64_t wire_bytes(const Train& train) noexcept {
    return train.all_bytes() + train.n * ProbeRequest::size + ProbeReply::size;
}

}  // namespace

Prober::Prober(ProbeOptions options)
    : options_(std::move(options)),
      limiter_(options_.limiter != nullptr ? options_.limiter : std::make_shared<Limiter>()),
      most_a_second_(Limiter::most(options_.expected.range(1).G.ns)),
      next_id_(options_.first_train) {
    options_.max_bytes = std::max<std::uint64_t>(options_.max_bytes, 1);
    options_.n = std::clamp<std::uint32_t>(options_.n, 2, ProbeRequest::max_n);
    switch (options_.kind) {
        case ProbeKind::quick: steps_ = quick_opening(options_.max_bytes); break;
        case ProbeKind::verify: steps_ = verify_steps(options_.expected.range(1).G.ns, options_.max_bytes); break;
        case ProbeKind::full:
            sizes_ = linear_grid(options_.max_bytes, options_.grid);
            for (const auto size : large_grid(options_.max_bytes, options_.large_bytes)) sizes_.push_back(size);
            steps_ = full_rounds(sizes_, options_.max_bytes, options_.rounds, options_.n, large_every_);
            break;
    }
}

double Prober::progress() const noexcept {
    return finished() ? 1 : static_cast<double>(at_) / static_cast<double>(steps_.size());
}

// --- What to send ----------------------------------------------------------------------------------------------------

Action Prober::next(base::Nanoseconds now, Application application) {
    if (started_ < 0) started_ = now;
    while (!finished()) {
        auto train = cold_ > 0 ? Train{} : train_for(steps_[at_]);
        if (application == Application::sending) shorten(train, now);
        const auto bytes = wire_bytes(train);
        if (rested_ > now) return {.kind = Action::Kind::wait, .until = rested_};
        const auto when =
            application == Application::idle ? std::optional(now) : limiter_->when(bytes, most_a_second_, now);
        if (!when || !fits(train, now)) {  // never, or not within the limits: do without
            step_done(now);
            continue;
        }
        if (*when > now) return {.kind = Action::Kind::wait, .until = *when};
        train.id = next_id_++;
        limiter_->sent(bytes, now);
        outcome_.cost.messages += train.messages();
        outcome_.cost.bytes += bytes;
        return {.kind = Action::Kind::send, .train = train};
    }
    return {};
}

Train Prober::train_for(const Step& step) const {
    Train train{.n = step.n, .bytes = step.bytes};
    if (step.kind == StepKind::single) return train;
    const double single = single_estimate(step.bytes);
    const auto* seen = known(step.bytes);
    const bool gap_seen = seen != nullptr && seen->gap > 0;
    if (step.kind == StepKind::train) {
        const double each = std::max(single / 2, gap_seen ? seen->gap : 0);
        if (options_.kind == ProbeKind::full && each * train.n > longest_train_ns) {
            train.n = std::max(shortest_train, static_cast<std::uint32_t>(longest_train_ns / each));
        }
        return train;
    }
    const double gap = gap_seen ? seen->gap : options_.expected.predict(step.bytes).rail.count();
    if (step.kind == StepKind::late) {
        train.late_look = static_cast<base::Nanoseconds>(2 * single) + base::microsecond;  // it has arrived by then
        return train;
    }
    // d = PRTT(1,0,s); where that does not exceed the gap PRTT(2,0,s), which is PRTT(1,0,s) + gap. A margin keeps noise
    // from making a delay too short that was meant to be just long enough.
    const auto delay = static_cast<base::Nanoseconds>(std::ceil(single));
    const bool shows = delay_shows_overhead(delay, 1.1 * gap);
    train.delay = shows ? delay : delay + static_cast<base::Nanoseconds>(std::ceil(gap));
    return train;
}

/// So many large messages in a row may be more than any second has room for; fewer of them say the same, less exactly.
void Prober::shorten(Train& train, base::Nanoseconds now) {
    if (options_.kind != ProbeKind::full || train.delay > 0) return;
    while (train.n > shortest_train && !limiter_->when(wire_bytes(train), most_a_second_, now)) --train.n;
}

bool Prober::fits(const Train& train, base::Nanoseconds now) const noexcept {
    if (options_.kind != ProbeKind::quick) return true;
    return outcome_.cost.messages + train.messages() <= QuickLimits::messages &&
           outcome_.cost.bytes + wire_bytes(train) <= QuickLimits::bytes &&
           spent_ns_ + estimate(train) <= 0.95 * QuickLimits::time_ns &&
           now - started_ <= patience * QuickLimits::time_ns;
}

/// How long the train will take, in ns.
double Prober::estimate(const Train& train) const noexcept {
    const auto single = single_estimate(train.bytes);
    const auto* seen = known(train.bytes);
    const double gap = seen != nullptr && seen->gap > 0 ? seen->gap : single / 2;
    return single + (train.n - 1) * (gap + static_cast<double>(train.delay)) + static_cast<double>(train.late_look);
}

double Prober::single_estimate(std::uint64_t bytes) const noexcept {
    const auto* exact = known(bytes);
    if (exact != nullptr && exact->single > 0) return exact->single;
    const auto delivery = [&](std::uint64_t size) { return options_.expected.predict(size).delivery.count(); };
    if (known_.empty()) return 2 * delivery(bytes);
    const auto& least = known_.front();
    if (known_.size() == 1 || bytes < least.bytes) {
        return std::max(least.single, least.single + 2 * (delivery(bytes) - delivery(least.bytes)));
    }
    const auto& most = known_.back();
    const double slope = (most.single - least.single) / static_cast<double>(most.bytes - least.bytes);
    return least.single + std::max(0.0, slope) * static_cast<double>(bytes - least.bytes);
}

const Prober::Known* Prober::known(std::uint64_t bytes) const noexcept {
    const auto found = std::ranges::lower_bound(known_, bytes, {}, &Known::bytes);
    return found != known_.end() && found->bytes == bytes ? &*found : nullptr;
}

// --- What came back --------------------------------------------------------------------------------------------------

void Prober::answered(const Sample& sample, base::Nanoseconds now) {
    if (finished()) return;
    if (cold_ > 0) return warmed_up(now);
    samples_.push_back(sample);
    spent_ns_ += sample.interrupted() ? sample.least_prtt() : sample.prtt();
    const bool again = sample.interrupted() && retries_ < retries_allowed(options_.kind);
    if (!sample.interrupted()) learn(sample);
    if (again) {
        ++retries_;
    } else {
        step_done(now);
    }
    rest(sample.train, now);
}

void Prober::warmed_up(base::Nanoseconds now) {
    if (--cold_ == 0) rested_ = now + rest_warm_;
}

/// A rail may let pass at once what it has saved up while idle (token buckets, socket buffers). All trains are to find it as
/// an application does that sends now and then: for as long as the bytes take where nothing is saved, nothing is sent.
///
/// Caches grow cold meanwhile. An application's message that finds enough saved up for it comes at least as long after the one
/// before as its own bytes take, but no longer need have passed. So where a train has to rest for longer, messages of a single
/// byte, which do not count, come so long before it.
void Prober::rest(const Train& train, base::Nanoseconds now) {
    if (options_.kind != ProbeKind::full || finished()) return;
    const auto saved_in = [&, byte = ns_per_byte()](std::uint64_t messages, std::uint64_t bytes) {
        const double ns = byte * static_cast<double>(messages * (bytes + around_message));
        return static_cast<base::Nanoseconds>(std::min(ns, static_cast<double>(longest_rest)));
    };
    const auto all = saved_in(train.n, train.bytes), own = saved_in(1, steps_[at_].bytes);
    rested_ = now + all;
    if (all - own < cold_after) return;
    rested_ -= own;
    rest_warm_ = own;
    cold_ = warm_ups;
}

/// The median of the large sizes, since one of them may have been held up for long; 0: not known.
double Prober::ns_per_byte() const {
    std::vector<double> all;
    for (const auto& size : known_) {
        if (size.bytes >= sizes_.back() / 4) all.push_back(size.gap / static_cast<double>(size.bytes));
    }
    if (all.empty()) return 0;
    const auto middle = all.begin() + static_cast<std::ptrdiff_t>((all.size() - 1) / 2);
    std::ranges::nth_element(all, middle);
    return *middle;
}

void Prober::lost(base::Nanoseconds now) {
    if (finished()) return;
    const auto bytes = steps_[at_].bytes;
    cold_ = 0;
    least_lost_ = least_lost_ == 0 ? bytes : std::min(least_lost_, bytes);
    if (++outcome_.lost % max_lost == 0 && !leave_out_large()) return conclude(now);
    step_done(now);
}

/// A full probe may lose what is large and still measure the rest. False if there is no rest.
bool Prober::leave_out_large() {
    const auto from = std::exchange(least_lost_, 0);
    if (options_.kind != ProbeKind::full || outcome_.lost >= max_lost_full || from <= sizes_.front()) return false;
    const auto first = std::ranges::lower_bound(sizes_, from);
    given_up_.insert(given_up_.end(), first, sizes_.end());
    sizes_.erase(first, sizes_.end());
    const auto next = steps_.begin() + static_cast<std::ptrdiff_t>(at_) + 1;
    steps_.erase(std::remove_if(next, steps_.end(), [&](const Step& step) { return step.bytes >= from; }),
                 steps_.end());
    return true;
}

void Prober::learn(const Sample& sample) {
    const auto& train = sample.train;
    if (train.late_look > 0 || train.delay > 0) return;
    auto place = std::ranges::lower_bound(known_, train.bytes, {}, &Known::bytes);
    const bool there = place != known_.end() && place->bytes == train.bytes;
    const auto least = [](double& value, double seen) { value = value > 0 ? std::min(value, seen) : seen; };
    if (train.n == 1) {
        if (!there) place = known_.insert(place, Known{.bytes = train.bytes});
        least(place->single, std::max(1.0, sample.prtt()));
    } else if (there && place->single > 0) {
        least(place->gap, std::max(0.0, sample.prtt() - place->single) / (train.n - 1));
    }
    if (known_.size() < 2) return;
    const auto& from = known_.front();
    const auto& to = known_.back();
    // Half the growth of the round trip is G, or more where copies come on top: the limiter errs on the careful side.
    const double slope = (to.single - from.single) / 2 / static_cast<double>(to.bytes - from.bytes);
    if (slope > 0) most_a_second_ = Limiter::most(slope);
}

void Prober::step_done(base::Nanoseconds now) {
    retries_ = 0;
    if (++at_ == steps_.size()) plan_more(now);
}

void Prober::plan_more(base::Nanoseconds now) {
    ++stages_;
    if (options_.kind == ProbeKind::quick && stages_ == 1) {
        const double small = single_estimate(1), second = single_estimate(QuickLimits::second_size);
        const double slope = std::max(0.0, second - small) / 2 / (QuickLimits::second_size - 1);
        steps_ = quick_rounds(quick_large(small, slope, options_.max_bytes));
        at_ = 0;
        return;
    }
    if (options_.kind == ProbeKind::full && stages_ == 1 && plan_large_again()) return;
    if (options_.kind == ProbeKind::full && stages_ < max_stages && plan_denser()) return;
    conclude(now);
}

/// Where large messages take no time they are measured in as many rounds as the others.
bool Prober::plan_large_again() {
    const auto first = std::ranges::upper_bound(sizes_, options_.max_bytes);
    const auto byte = ns_per_byte();
    const auto left = options_.rounds - (options_.rounds + large_every_ - 1) / large_every_;
    if (large_every_ == 1 || first == sizes_.end() || left == 0 || byte <= 0 || byte >= fast) return false;
    large_every_ = 1;
    steps_ = full_rounds({first, sizes_.end()}, options_.max_bytes, left, options_.n, large_every_);
    at_ = 0;
    stages_ = 0;  // it is the same one
    return true;
}

/// Adds sizes where the protocol changes; false when there are none to add.
bool Prober::plan_denser() {
    std::vector<std::uint64_t> ends;
    for (const auto& range : assess(samples_, options_.changes).model.ranges) {
        if (range.up_to_bytes < sizes_.back()) ends.push_back(range.up_to_bytes);  // there is nothing beyond that one
    }
    const auto added = stages_ < denser_stages ? denser(sizes_, ends) : where_wide(sizes_, ends);
    if (added.empty()) return false;
    steps_ = full_rounds(added, options_.max_bytes, options_.rounds, options_.n, large_every_);
    at_ = 0;
    sizes_.insert(sizes_.end(), added.begin(), added.end());
    std::ranges::sort(sizes_);
    return true;
}

void Prober::conclude(base::Nanoseconds now) {
    outcome_.took = now - started_;
    outcome_.assessment = assess(samples_, options_.changes);
    const auto& sizes = outcome_.assessment.sizes;
    const bool enough = !sizes.empty();
    if (options_.kind == ProbeKind::verify) {
        const bool clean = std::ranges::any_of(sizes, std::logical_not{}, &Measured::shaky);
        outcome_.verdict = enough && clean && outcome_.lost < max_lost ? compare() : Verdict::too_little;
    } else {
        const bool gaps = enough && sizes.front().gap.kept > 0;
        outcome_.verdict = gaps ? Verdict::measured : Verdict::too_little;
        // Noise may leave nothing for the bandwidth of a quick probe: none is worse than a guess.
        for (auto& range : outcome_.assessment.model.ranges) {
            if (range.G.ns <= 0) range.G = options_.expected.range(1).G;
            // Of two sizes the large one may have been held up in all of its rounds: then nothing would be sent that shows it.
            auto& besides = range.L.per_byte.ns;
            if (options_.kind == ProbeKind::quick) besides = std::min(besides, most_besides * range.G.ns);
        }
        if (options_.kind == ProbeKind::full) tell_unmeasured();
    }
    const auto interrupted = outcome_.assessment.interrupted;
    const bool doubtful =
        options_.kind == ProbeKind::quick && (outcome_.lost >= max_lost || interrupted * 4 > samples_.size() ||
                                              std::ranges::any_of(sizes, &Measured::shaky));
    outcome_.disturbed = options_.kind != ProbeKind::full && (doubtful || outcome_.verdict == Verdict::too_little);
    if (outcome_.verdict != Verdict::measured && outcome_.verdict != Verdict::disagrees) {
        const bool own = options_.of_another && outcome_.verdict == Verdict::verified;
        outcome_.assessment.model = own ? with_own_latency(options_.expected) : options_.expected;
    }
}

/// What got no answer that it could be measured by, and why: and a range is known as well as the part of its sizes that were
/// measured.
void Prober::tell_unmeasured() {
    const auto& measured = outcome_.assessment.sizes;
    auto planned = sizes_;
    planned.insert(planned.end(), given_up_.begin(), given_up_.end());
    std::ranges::sort(planned);
    const auto is_unmeasured = [&](std::uint64_t size) {
        return !std::ranges::binary_search(measured, size, {}, &Measured::bytes);
    };
    for (const auto size : planned) {
        if (is_unmeasured(size)) (answered_of(size) ? outcome_.interrupted : outcome_.missing).push_back(size);
    }
    auto first = planned.begin();
    for (auto& range : outcome_.assessment.model.ranges) {
        const auto last = std::ranges::upper_bound(first, planned.end(), range.up_to_bytes);
        const auto all = last - first;
        const auto there = all - std::count_if(std::exchange(first, last), last, is_unmeasured);
        if (there == all) continue;
        auto& known = range.confidence;
        for (double* value : {&known.L, &known.o_s, &known.o_r, &known.g, &known.G}) {
            *value *= static_cast<double>(there) / static_cast<double>(all);
        }
    }
}

/// Of a single message: without one that was clean, no size is measured, whatever its trains and late looks say.
bool Prober::answered_of(std::uint64_t bytes) const {
    return std::ranges::any_of(samples_, [&](const Sample& sample) {
        return sample.train.bytes == bytes && sample.train.n == 1 && sample.train.late_look == 0;
    });
}

/// Rails of one kind have their overheads and bandwidth in common, but not the length of the way. What the smallest message
/// took beyond what was expected, or less, is that, if it is more than jitter.
LogGP Prober::with_own_latency(LogGP model) const {
    const auto& smallest = outcome_.assessment.sizes.front();
    if (smallest.bytes > 1 || smallest.shaky) return model;  // what a large one takes is mostly G
    const auto best = model.predict(smallest.bytes).delivery - model.jitter;
    const auto longer = Nanos(smallest.single.low / 2) - best;
    if (std::abs(longer.count()) <= model.jitter.count()) return model;
    for (auto& range : model.ranges) range.L.fixed += longer;
    if (model.half_round_trip > Nanos(0)) model.half_round_trip += longer;
    return model;
}

/// Whether each size took about as long as the expected model says. What jitter may add is bounded: a model that was measured
/// while hardly anything could run would hold for everything.
Verdict Prober::compare() const {
    for (const auto& size : outcome_.assessment.sizes) {
        const double expected = options_.expected.predict(size.bytes).delivery.count();
        const double off = std::abs(size.single.low / 2 - expected);
        const double allowed = options_.tolerance * expected;
        if (off > allowed + std::min(allowed, options_.expected.jitter.count())) return Verdict::disagrees;
    }
    return Verdict::verified;
}

}  // namespace railmux::model

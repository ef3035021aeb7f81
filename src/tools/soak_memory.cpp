// Lanes of one-sided operations.
#include <fmt/format.h>

#include <algorithm>

#include "tools/soak_lanes.hpp"

namespace railmux::tools {

// --- Puts and gets ---------------------------------------------------------------------------------------------------

void SoakPuts::begin(Slot& slot, std::uint64_t place) {
    slot.number = next_++;
    slot.item = soak_item(side_.outgoing(), SoakKind::put, slot.number, side_.terms.max_bytes);
    SoakRandom random(slot.item.content);
    const SoakPlaces places{side_.terms.max_bytes};
    slot.offset = places.put(place) + random.below(side_.terms.max_bytes - slot.item.bytes + 1);
    slot.remote = random.below(2) == 0;
    slot.bytes.resize(slot.item.bytes);
    slot.bytes.shrink_to_fit();
    write_content(slot.bytes, slot.item.content);
    slot.phase = Phase::putting;
    slot.operation.began(side_.context.iput(side_.peer, {key_, slot.offset}, slot.bytes,
                                            {.end = slot.remote ? PutEnd::remote : PutEnd::local},
                                            slot.operation.completion()));
}

/// The operation of its phase has ended well.
void SoakPuts::go_on(Slot& slot) {
    auto& context = side_.context;
    if (slot.phase == Phase::putting && !slot.remote) {
        slot.phase = Phase::flushing;
        slot.operation.began(context.iflush(side_.peer, slot.operation.completion()));
    } else if (slot.phase == Phase::getting) {
        compare(slot);
        slot.phase = Phase::idle;
    } else {
        side_.tally.add(SoakKind::put, slot.item.bytes);
        std::fill(slot.bytes.begin(), slot.bytes.end(), std::byte{0xee});
        slot.phase = Phase::getting;
        slot.operation.began(
            context.iget(side_.peer, {key_, slot.offset}, MutableBuffer(slot.bytes), slot.operation.completion()));
    }
}

void SoakPuts::compare(const Slot& slot) {
    side_.tally.add(SoakKind::get, slot.item.bytes);
    const auto wrong = first_wrong(slot.bytes, slot.item.content);
    if (!wrong) return;
    side_.fault(fmt::format("put {} to {} ({} bytes at {}, known to be there by {}): byte {} read back is another one",
                            slot.number, side_.context.name(side_.peer), slot.item.bytes, slot.offset,
                            slot.remote ? "its end" : "a flush", *wrong));
}

bool SoakPuts::step(bool more) {
    bool any = false;
    for (std::uint64_t place = 0; place < slots_.size(); ++place) {
        auto& slot = slots_[place];
        if (slot.phase == Phase::idle) {
            if (more) begin(slot, place);
            continue;
        }
        const auto status = slot.operation.take();
        if (!status) continue;
        any = true;
        if (status->ok()) {
            go_on(slot);
            continue;
        }
        const auto* what = slot.phase == Phase::getting   ? "getting"
                           : slot.phase == Phase::putting ? "putting"
                                                          : "flushing";
        side_.failed(*status, fmt::format("{} {} bytes (put {} to {})", what, slot.item.bytes, slot.number,
                                          side_.context.name(side_.peer)));
    }
    return any;
}

bool SoakPuts::idle() const noexcept {
    return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.phase == Phase::idle; });
}

std::string SoakPuts::outstanding() const {
    std::string text;
    for (const auto& slot : slots_) {
        if (slot.phase == Phase::idle) continue;
        const auto* what = slot.phase == Phase::putting    ? "has not ended"
                           : slot.phase == Phase::flushing ? "has not been flushed"
                                                           : "has not been read back";
        text += fmt::format("{}put {} to {} ({} bytes) {}", text.empty() ? "" : "\n", slot.number,
                            side_.context.name(side_.peer), slot.item.bytes, what);
    }
    return text;
}

// --- Atomics ---------------------------------------------------------------------------------------------------------

/// One of the three on a word of ours: all are applied in the order of their calls, so what each finds is known now.
template <typename Word>
void SoakAtomics::start_own(Atomic& atomic, Word& before, Word& model, std::uint64_t offset) {
    auto& context = side_.context;
    const RemotePlace place{card_.own, offset};
    const auto value = static_cast<Word>(random_.next());
    atomic.width = sizeof(Word);
    atomic.expected = model;
    switch (random_.below(4)) {
        case 0:
            atomic.operation.began(
                context.ifetch_add<Word>(side_.peer, place, value, before, atomic.operation.completion()));
            model = static_cast<Word>(model + value);
            break;
        case 1:
            atomic.operation.began(
                context.iswap<Word>(side_.peer, place, value, before, atomic.operation.completion()));
            model = value;
            break;
        case 2:
            atomic.operation.began(
                context.icompare_swap<Word>(side_.peer, place, model, value, before, atomic.operation.completion()));
            model = value;
            break;
        default:  // does not find what it expects
            atomic.operation.began(context.icompare_swap<Word>(side_.peer, place, static_cast<Word>(~model), value,
                                                               before, atomic.operation.completion()));
            break;
    }
}

void SoakAtomics::start(Atomic& atomic) {
    const SoakPlaces places{side_.terms.max_bytes};
    atomic.done = false;
    switch (random_.below(3)) {
        case 0: start_own<std::uint64_t>(atomic, atomic.before8, model8_, places.word8()); break;
        case 1: start_own<std::uint32_t>(atomic, atomic.before4, model4_, places.word4()); break;
        default:
            atomic.width = 0;
            ++adds_;
            atomic.operation.began(side_.context.ifetch_add<std::uint64_t>(
                side_.peer, {card_.shared, 0}, 1, atomic.before8, atomic.operation.completion()));
            break;
    }
}

void SoakAtomics::check(Atomic& atomic, std::uint64_t number) {
    const auto name = [&] { return fmt::format("atomic {} at {}", number, side_.context.name(side_.peer)); };
    side_.tally.add(SoakKind::atomic, atomic.width == 0 ? 8 : atomic.width);
    if (atomic.width == 0) {
        if (shared_seen_ && atomic.before8 <= *shared_seen_) {
            side_.fault(fmt::format("{}: the word that all add to went from {} back to {}", name(), *shared_seen_,
                                    atomic.before8));
        }
        shared_seen_ = atomic.before8;
        return;
    }
    const auto before = atomic.width == 4 ? atomic.before4 : atomic.before8;
    if (before == atomic.expected) return;
    side_.fault(fmt::format("{}: it found {} where the one before left {}: lost, doubled or out of order", name(),
                            before, atomic.expected));
}

bool SoakAtomics::step(bool more) {
    // They are applied in the order of their calls; that one is known to have been before another is in no order.
    bool any = false;
    for (auto number = first_; number < next_; ++number) {
        auto& atomic = under_way_[number % window];
        const auto status = atomic.operation.take();
        if (!status) continue;
        any = atomic.done = true;
        if (!status->ok()) {
            side_.failed(*status, fmt::format("atomic {} at {}", number, side_.context.name(side_.peer)));
        }
    }
    for (; first_ < next_ && under_way_[first_ % window].done; ++first_) check(under_way_[first_ % window], first_);
    while (more && next_ - first_ < window) start(under_way_[next_++ % window]);
    return any;
}

std::string SoakAtomics::outstanding() const {
    if (idle()) return {};
    return fmt::format("atomic {} at {} has not ended; {} were started", first_, side_.context.name(side_.peer), next_);
}

// --- Notified puts ---------------------------------------------------------------------------------------------------

std::uint64_t SoakNotifies::puts_of(std::uint64_t stream, std::uint64_t round) noexcept {
    return 1 + soak_seed(~stream, round) % SoakPlaces::notified;
}

void SoakNotifies::begin() {
    const auto stream = side_.outgoing();
    const SoakPlaces places{side_.terms.max_bytes};
    const auto count = puts_of(stream, rounds_);
    answer_.began(side_.context.irecv(side_.peer, soak_round_tag, MutableBuffer{}, answer_.completion()));
    for (std::uint64_t i = 0; i < count; ++i) {
        auto& put = puts_[i];
        const auto item =
            soak_item(stream, SoakKind::notified, rounds_ * SoakPlaces::notified + i, side_.terms.max_bytes);
        put.bytes.resize(item.bytes);
        put.bytes.shrink_to_fit();
        write_content(put.bytes, item.content);
        put.operation.began(side_.context.iput(side_.peer, {key_, places.note(i)}, put.bytes, {.notify = true},
                                               put.operation.completion()));
    }
    running_ = true;
    left_ = count + 1;
}

bool SoakNotifies::step(bool more) {
    if (!running_) {
        if (more) begin();
        return false;
    }
    bool any = false;
    const auto take = [&](SoakOperation& operation) {
        const auto status = operation.take();
        if (!status) return;
        any = true;
        --left_;
        if (status->ok()) return;
        side_.failed(*status, fmt::format("round {} of notified puts to {}", rounds_, side_.context.name(side_.peer)));
    };
    for (auto& put : puts_) take(put.operation);
    take(answer_);
    if (left_ > 0) return any;
    running_ = false;
    ++rounds_;
    return true;
}

std::string SoakNotifies::outstanding() const {
    if (!running_) return {};
    return fmt::format("round {} of notified puts to {}: {} of its puts and its answer have not ended", rounds_,
                       side_.context.name(side_.peer), left_);
}

bool SoakNotified::step() {
    bool any = false;
    if (const auto status = answer_.take(); status) {
        any = true;
        if (!status->ok()) side_.failed(*status, "answering notified puts of " + side_.context.name(side_.peer));
    }
    if (answer_.active()) return any;
    const auto puts = SoakNotifies::puts_of(side_.incoming(), rounds_);
    const auto notified = region_.notified();
    if (notified > notified_ + puts) {
        side_.fault(fmt::format("{} notified {} puts, and there are {}: doubled, perhaps",
                                side_.context.name(side_.peer), notified_ + puts, notified));
        notified_ = notified - puts;
    }
    if (notified < notified_ + puts) return any;
    notified_ += puts;
    const SoakPlaces places{side_.terms.max_bytes};
    for (std::uint64_t i = 0; i < puts; ++i) check(i, region_.memory().subspan(places.note(i), side_.terms.max_bytes));
    ++rounds_;
    answer_.began(side_.context.isend(side_.peer, soak_round_tag, ConstBuffer{}, answer_.completion()));
    return true;
}

void SoakNotified::check(std::uint64_t put, std::span<const std::byte> bytes) {
    const auto item =
        soak_item(side_.incoming(), SoakKind::notified, rounds_ * SoakPlaces::notified + put, side_.terms.max_bytes);
    side_.tally.add(SoakKind::notified, item.bytes);
    const auto wrong = first_wrong(bytes.first(item.bytes), item.content);
    if (!wrong) return;
    side_.fault(fmt::format("put {} of round {} of {} ({} bytes) was notified, and its byte {} is not there", put,
                            rounds_, side_.context.name(side_.peer), item.bytes, *wrong));
}

std::string SoakNotified::outstanding() const {
    if (over()) return {};
    return fmt::format("{} rounds of notified puts of {} have come{}", rounds_, side_.context.name(side_.peer),
                       end_ ? fmt::format(", of {}", *end_) : std::string());
}

}  // namespace railmux::tools

#include "messaging/one_sided_target.hpp"

#include <algorithm>
#include <atomic>

#include "base/bytes.hpp"
#include "base/crypto.hpp"

namespace railmux::messaging {

using rails::Frame;
using rails::FrameHeader;
using rails::FrameType;

namespace {

// A frame of results is of the pool's smaller classes, and one answers as many frames as a look at a rail may bring.
constexpr std::size_t results_per_frame = 40;

template <std::unsigned_integral T>
std::uint64_t apply(std::byte* place, const AtomicBody& what) noexcept {
    std::atomic_ref<T> word(*reinterpret_cast<T*>(place));  // NOLINT: aligned, and the application's memory
    const auto operand = static_cast<T>(what.operand);
    auto expected = static_cast<T>(what.expected);
    switch (what.op) {
        case AtomicOp::fetch_add: return word.fetch_add(operand);
        case AtomicOp::swap: return word.exchange(operand);
        default: word.compare_exchange_strong(expected, operand); return expected;
    }
}

}  // namespace

Target::Target(Operations& operations, rails::RailManager& rails, BulkOut& out, BulkIn& in)
    : operations_(operations), rails_(rails), out_(out), in_(in) {}

// --- Regions ---------------------------------------------------------------------------------------------------------

std::uint32_t Target::add(std::span<std::byte> memory, Rights rights) {
    std::array<std::byte, 16> secret;
    base::fill_random(secret);
    Region& region = regions_.take();
    region.withdrawn = false;
    region.rights = rights;
    region.memory = memory;
    region.secret = secret;
    region.notified = 0;
    region.waiters.clear();
    return region.index;
}

RemoteKey Target::key(std::uint32_t slot) noexcept {
    const Region& region = regions_.at(slot);
    std::array<std::byte, RemoteKey::size> bytes;
    store_handle(bytes.data(), handle_of(region));
    std::ranges::copy(region.secret, bytes.begin() + 8);
    return RemoteKey::from(bytes);
}

Target::Region* Target::find(const RemotePlace& place, std::uint64_t bytes, Rights wanted) noexcept {
    const auto key = place.key.bytes();
    Region* region = regions_.find({base::load<std::uint32_t>(key.data()), base::load<std::uint32_t>(key.data() + 4)});
    if (region == nullptr || !base::equal_constant_time(key.subspan(8), region->secret)) return nullptr;
    const auto needed = static_cast<unsigned>(wanted);
    if (region->withdrawn || (static_cast<unsigned>(region->rights) & needed) != needed) return nullptr;
    const auto size = region->memory.size();
    return place.offset <= size && bytes <= size - place.offset ? region : nullptr;
}

void Target::await(std::uint32_t slot, std::uint64_t count, Operation& operation) {
    Region& region = regions_.at(slot);
    if (region.notified >= count) {
        operations_.finish(operation, {});
    } else {
        region.waiters.push_back({count, &operation});
    }
}

/// A notified put is in its place.
void Target::note(Region& region) {
    ++region.notified;
    ++notified_;
    std::erase_if(region.waiters, [&](const Waiter& waiter) {
        if (waiter.count > region.notified) return false;
        operations_.finish(*waiter.operation, {});
        return true;
    });
}

void Target::withdraw(std::uint32_t slot) {
    Region& region = regions_.at(slot);
    region.withdrawn = true;
    servings_.for_each([&](Serving& serving) {
        if (serving.region != &region || serving.reading) return;
        serving.region = nullptr;
        in_.close(serving.bulk);
    });
    cancel(region);
}

void Target::cancel(Region& region) {
    for (const auto& waiter : region.waiters) operations_.finish(*waiter.operation, {.code = ErrorCode::cancelled});
    region.waiters.clear();
}

void Target::cancel() {
    regions_.for_each([&](Region& region) { cancel(region); });
}

std::vector<Target::Reader> Target::readers(std::uint32_t slot) {
    std::vector<Reader> readers;
    servings_.for_each([&](const Serving& serving) {
        if (!serving.reading || serving.region != &regions_.at(slot)) return;
        if (std::ranges::find(readers, serving.peer, &Reader::peer) != readers.end()) return;
        readers.push_back({serving.peer, out_.taken(serving.peer)});
    });
    return readers;
}

void Target::remove(std::uint32_t slot) noexcept { regions_.give(regions_.at(slot)); }

// --- In one frame ----------------------------------------------------------------------------------------------------

bool Target::on_put(std::uint32_t peer, std::span<const std::byte> body) {
    const auto put = parse_put(body);
    if (!put) return false;
    const auto& head = put->head;
    Region* region = find(head.place, put->payload.size(), Rights::write);
    if (region != nullptr) {
        base::copy(region->memory.data() + head.place.offset, put->payload.data(), put->payload.size());
        if (put->notify) note(*region);
    }
    tell(peer, {head.origin, region != nullptr ? ErrorCode::ok : ErrorCode::access_denied});
    return true;
}

bool Target::on_get(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto get = parse_get(body);
    if (!get || get->bytes > largest_small) return false;
    const auto& head = get->head;
    Region* region = find(head.place, get->bytes, Rights::read);
    if (region == nullptr) {
        tell(peer, {head.origin, ErrorCode::access_denied});
        return true;
    }
    const auto bytes = FrameHeader::size + GotBody::size + static_cast<std::size_t>(get->bytes);
    Frame* frame = rails_.pool().take(bytes);
    frame->type = FrameType::got;
    frame->bytes = static_cast<std::uint32_t>(bytes);
    frame->payload = frame->aux = static_cast<std::uint32_t>(get->bytes);
    write_got(frame->data() + FrameHeader::size, {head.origin, {}});
    base::copy(frame->data() + FrameHeader::size + GotBody::size, region->memory.data() + head.place.offset,
               static_cast<std::size_t>(get->bytes));
    rails_.send(peer, frame, now);
    return true;
}

bool Target::on_atomic(std::uint32_t peer, std::span<const std::byte> body) {
    const auto atomic = parse_atomic(body);
    if (!atomic) return false;
    const auto& head = atomic->head;
    Region* region = find(head.place, atomic->width, Rights::read_write);
    if (region == nullptr) {
        tell(peer, {head.origin, ErrorCode::access_denied});
        return true;
    }
    auto* const place = region->memory.data() + head.place.offset;
    if (reinterpret_cast<std::uintptr_t>(place) % atomic->width != 0) {
        tell(peer, {head.origin, ErrorCode::invalid_argument});
        return true;
    }
    const auto before =
        atomic->width == 4 ? apply<std::uint32_t>(place, *atomic) : apply<std::uint64_t>(place, *atomic);
    tell(peer, {head.origin, ErrorCode::ok, before});
    return true;
}

// --- Large -----------------------------------------------------------------------------------------------------------

Target::Serving& Target::serve(std::uint32_t peer, const AskHead& head, Region& region, std::uint64_t bytes) {
    Serving& serving = servings_.take();
    serving.region = &region;
    serving.peer = peer;
    serving.origin = head.origin;
    serving.part = {region.memory.data() + head.place.offset, static_cast<std::size_t>(bytes), 0};
    return serving;
}

bool Target::on_put_request(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto put = parse_put_request(body);
    if (!put) return false;
    Region* region = find(put->head.place, put->bytes, Rights::write);
    if (region == nullptr) {
        tell(peer, {put->head.origin, ErrorCode::access_denied});
        return true;
    }
    Serving& serving = serve(peer, put->head, *region, put->bytes);
    serving.reading = false;
    serving.notify = put->notify;
    const auto opened = in_.open(
        {.peer = peer, .pieces = {&serving.part, 1}, .bytes = put->bytes, .owner = this, .cookie = serving.index});
    if (opened) {
        serving.bulk = *opened;
        in_.answer(peer, put->sender, *opened, put->bytes, now);
    } else {
        servings_.give(serving);
        tell(peer, {put->head.origin, ErrorCode::out_of_memory});
    }
    return true;
}

bool Target::on_get_request(std::uint32_t peer, std::span<const std::byte> body, base::Nanoseconds now) {
    const auto get = parse_get_request(body, keys_);
    if (!get) return false;
    Region* region = find(get->head.place, get->bytes, Rights::read);
    if (region == nullptr) {
        tell(peer, {get->head.origin, ErrorCode::access_denied});
        return true;
    }
    Serving& serving = serve(peer, get->head, *region, get->bytes);
    serving.reading = true;
    out_.send({.peer = peer, .pieces = {&serving.part, 1}, .bytes = get->bytes, .owner = this, .cookie = serving.index},
              get->receiver, keys_, now);
    return true;
}

void Target::bulk_sent(std::uint64_t index, ErrorCode, std::uint64_t) {
    servings_.give(servings_.at(static_cast<std::uint32_t>(index)));  // its fins have told the origin
}

void Target::bulk_received(std::uint64_t index, ErrorCode code) {
    Serving& serving = servings_.at(static_cast<std::uint32_t>(index));
    if (code == ErrorCode::ok && serving.notify) note(*serving.region);
    if (code == ErrorCode::ok || code == ErrorCode::access_denied) tell(serving.peer, {serving.origin, code});
    servings_.give(serving);
}

// --- Answering -------------------------------------------------------------------------------------------------------

void Target::tell(std::uint32_t peer, const Result& result) {
    std::size_t i = 0;  // of few: one look at a rail brings frames of few peers
    while (i < told_ && tellings_[i].peer != peer) ++i;
    if (i == told_) {
        if (told_ == tellings_.size()) tellings_.emplace_back();
        tellings_[told_++].peer = peer;
    }
    tellings_[i].results.push_back(result);
}

bool Target::answer(base::Nanoseconds now) {
    if (told_ == 0) return false;
    for (std::size_t i = 0; i < told_; ++i) {
        send_results(tellings_[i], now);
        tellings_[i].results.clear();
    }
    told_ = 0;
    return true;
}

void Target::send_results(const Telling& telling, base::Nanoseconds now) {
    const auto& results = telling.results;  // of a peer that has gone: none
    for (std::size_t i = 0; i < results.size(); i += results_per_frame) {
        const auto count = std::min(results.size() - i, results_per_frame);
        const auto bytes = FrameHeader::size + count * Result::size;
        Frame* frame = rails_.pool().take(bytes);
        frame->type = FrameType::results;
        frame->bytes = static_cast<std::uint32_t>(bytes);
        auto* at = frame->data() + FrameHeader::size;
        for (std::size_t k = 0; k < count; ++k, at += Result::size) write_result(at, results[i + k]);
        rails_.send(telling.peer, frame, now);
    }
}

void Target::peer_gone(std::uint32_t peer) noexcept {
    for (std::size_t i = 0; i < told_; ++i) {
        if (tellings_[i].peer == peer) tellings_[i].results.clear();
    }
}

}  // namespace railmux::messaging

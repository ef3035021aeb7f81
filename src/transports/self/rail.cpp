#include "transports/self/rail.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <system_error>
#include <utility>

#include "base/bytes.hpp"
#include "base/crypto.hpp"

namespace railmux::transports::self {

namespace {

constexpr std::uint32_t address_tag = 0x464c4553;  // "SELF"

RailTraits self_traits(std::uint32_t max_segments) {
    RailTraits traits;
    traits.name = "self";
    traits.max_frame = 65536;
    traits.max_hello = 1024;
    traits.max_reply = 1024;
    traits.max_segments = max_segments;
    traits.tx_depth = 256;
    traits.max_put = 1 << 20;  // one memcpy inside poll: about 100 us, during which nothing else is served
    traits.put = traits.get = traits.notify = true;
    traits.inward = true;
    traits.events = true;
    traits.ordered = true;
    traits.done_is_delivered = true;
    return traits;
}

}  // namespace

SelfRail::SelfRail(base::Logger& log)
    : log_(log), traits_(self_traits(max_segments)), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (!wake_.valid()) {
        throw Error(ErrorCode::system, "rail self: eventfd failed: " + std::system_category().message(errno),
                    "raise the limit of open files (ulimit -n)");
    }
    base::Writer writer;
    writer.write(address_tag).write(base::random_u64());
    address_ = std::move(writer).take();
}

// --- Links -----------------------------------------------------------------------------------------------------------

Reachability SelfRail::reach(std::span<const std::byte> address) const {
    base::Reader own(address_);
    base::Reader other(address);
    const auto tag = other.read<std::uint32_t>();
    const auto id = other.read<std::uint64_t>();
    if (!other.done() || tag != own.read<std::uint32_t>()) return {Reach::never, "not an address of a self rail"};
    if (id != own.read<std::uint64_t>()) return {Reach::never, {}};
    return {Reach::direct, "this process itself"};
}

LinkId SelfRail::connect(std::span<const std::byte> address, std::span<const std::byte> hello) {
    const auto id = links_.add({});
    if (reach(address).reach == Reach::never || hello.size() > traits_.max_hello) {
        end_link(id, hello.size() > traits_.max_hello ? "hello too long" : "not the address of this process");
        return id;
    }
    const auto other = links_.add({.state = State::requested, .peer = id});
    links_.find(id)->peer = other;
    push_event({.kind = EventKind::connect_request, .link = other}, hello);
    return id;
}

void SelfRail::accept(LinkId id, std::span<const std::byte> reply) {
    auto* link = links_.find(id);
    if (link == nullptr || link->state != State::requested) return;
    link->state = State::up;
    push_event({.kind = EventKind::link_up, .link = id});
    links_.find(link->peer)->state = State::up;
    push_event({.kind = EventKind::link_up, .link = link->peer}, reply);
}

void SelfRail::refuse(LinkId id, std::span<const std::byte> reply) {
    const auto* link = links_.find(id);
    if (link == nullptr || link->state != State::requested) return;
    end_link(link->peer, "refused by the other side", reply);
    end_link(id, "refused here");
}

void SelfRail::disconnect(LinkId id) {
    const auto* link = links_.find(id);
    if (link == nullptr) return;
    end_link(link->peer, "closed by the other side");
    end_link(id, "closed here");
}

std::string SelfRail::describe(LinkId id) const {
    const auto* link = links_.find(id);
    if (link == nullptr) return "self (no link)";
    return "self " + std::to_string(id.index) + " - " + std::to_string(link->peer.index);
}

void SelfRail::end_link(LinkId id, std::string_view text, std::span<const std::byte> reply) {
    if (links_.find(id) == nullptr) return;
    for (std::size_t i = 0, count = queue_.size(); i < count; ++i) {
        auto& item = queue_[i];
        if (item.kind < Item::Kind::frame || item.from != id) continue;
        item.kind = Item::Kind::nothing;
        const auto cookie = item.cookie;
        push_event({.kind = EventKind::done, .status = WorkStatus::link_lost, .link = id, .cookie = cookie});
    }
    push_event({.kind = EventKind::link_down, .link = id, .text = text}, reply);
    links_.release(id);
}

base::Result<Region> SelfRail::add_region(std::span<std::byte> memory, Access access) {
    return regions_.add(memory, access);
}

// --- Posting ---------------------------------------------------------------------------------------------------------

SelfRail::Item& SelfRail::push(Item::Kind kind) {
    wake();
    auto& item = queue_.push();
    item.kind = kind;
    item.event = {};
    item.bytes.clear();
    return item;
}

void SelfRail::push_event(const Event& event, std::span<const std::byte> bytes) {
    auto& item = push(Item::Kind::event);
    item.event = event;
    item.bytes.assign(bytes.begin(), bytes.end());
    item.event.data = item.bytes;
}

std::size_t SelfRail::post(std::span<const Work> works) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    for (std::size_t i = 0; i < works.size(); ++i) {
        const auto& work = works[i];
        auto* link = links_.find(work.link);
        if (link == nullptr || link->state != State::up) {
            wake();
            dones_.push() = {work.link, work.cookie, WorkStatus::link_lost};
            continue;
        }
        if (link->outstanding == traits_.tx_depth) return i;
        ++link->outstanding;
        enqueue(work, link->peer);
    }
    return works.size();
}

void SelfRail::enqueue(const Work& work, LinkId to) {
    assert(work.segments.size() <= max_segments);
    const auto kind = work.op == Op::send ? Item::Kind::frame : work.op == Op::put ? Item::Kind::put : Item::Kind::get;
    auto& item = push(kind);
    item.from = work.link;
    item.cookie = work.cookie;
    item.event = {.immediate = work.immediate, .link = to};
    item.notify = work.notify;
    item.key = work.remote;
    item.offset = work.offset;
    item.count = 0;
    for (const auto& segment : work.segments) {
        if (segment.size != 0) item.segments[item.count++] = segment;
    }
    if (work.op != Op::send) return;
    item.event.kind = EventKind::received;
    if (item.count == 1) {
        item.event.data = {item.segments[0].data, item.segments[0].size};
        return;
    }
    for (const auto& segment : work.segments) {
        item.bytes.insert(item.bytes.end(), segment.data, segment.data + segment.size);
    }
    item.event.data = item.bytes;
}

// --- Polling ---------------------------------------------------------------------------------------------------------

std::size_t SelfRail::poll(std::span<Event> events) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    if (armed_) {
        std::uint64_t count = 0;
        static_cast<void>(::read(wake_.get(), &count, sizeof count));  // empty unless wake() was called since
        armed_ = false;
    }
    if (queue_.empty() && dones_.empty()) return 0;
    take_back();
    std::size_t count = 0;
    while (count < events.size() && next_event(events[count])) ++count;
    return count;
}

/// What the last poll lent is ours again: its frames are done.
void SelfRail::take_back() {
    for (; lent_ > 0; --lent_) {
        const auto& item = queue_[0];
        if (item.kind == Item::Kind::frame) dones_.push() = {item.from, item.cookie, WorkStatus::ok};
        queue_.pop();
    }
}

bool SelfRail::next_event(Event& event) {
    if (!dones_.empty()) {
        event = done(dones_[0]);
        dones_.pop();
        return true;
    }
    while (lent_ < queue_.size()) {
        auto& item = queue_[lent_];
        if (item.kind == Item::Kind::put || item.kind == Item::Kind::get) {
            const auto status = item.kind == Item::Kind::put ? copy_put(item) : copy_get(item);
            event = done({item.from, item.cookie, status});
            const bool notify = item.kind == Item::Kind::put && item.notify && status == WorkStatus::ok;
            item.kind = notify ? Item::Kind::event : Item::Kind::nothing;
            item.event.kind = EventKind::notified;
            return true;
        }
        ++lent_;
        if (item.kind == Item::Kind::nothing) continue;
        event = item.event;
        return true;
    }
    return false;
}

Event SelfRail::done(const Done& done) noexcept {
    auto* link = links_.find(done.link);
    if (link != nullptr && done.status != WorkStatus::link_lost) --link->outstanding;  // a lost one was never counted
    return {.kind = EventKind::done, .status = done.status, .link = done.link, .cookie = done.cookie};
}

WorkStatus SelfRail::copy_put(const Item& item) noexcept {
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i < item.count; ++i) bytes += item.segments[i].size;
    const auto to = regions_.find(item.key, item.offset, bytes, Access::remote_write);
    if (!to) {
        discarded();
        return WorkStatus::access_denied;
    }
    auto* at = to->data();
    for (std::uint32_t i = 0; i < item.count; ++i) {
        base::move_bytes(at, item.segments[i].data, item.segments[i].size);  // both may be in one buffer
        at += item.segments[i].size;
    }
    return WorkStatus::ok;
}

WorkStatus SelfRail::copy_get(const Item& item) noexcept {
    std::size_t bytes = 0;
    for (std::uint32_t i = 0; i < item.count; ++i) bytes += item.segments[i].size;
    const auto from = regions_.find(item.key, item.offset, bytes, Access::remote_read);
    if (!from) {
        discarded();
        return WorkStatus::access_denied;
    }
    const auto* at = from->data();
    for (std::uint32_t i = 0; i < item.count; ++i) {
        base::move_bytes(item.segments[i].data, at, item.segments[i].size);
        at += item.segments[i].size;
    }
    return WorkStatus::ok;
}

void SelfRail::discarded() noexcept {
    if (discarded_++ == 0) log_.warning("rail self: a put or get with a wrong key, bounds or right was discarded");
}

// --- Sleeping --------------------------------------------------------------------------------------------------------

int SelfRail::arm() noexcept {
    if (lent_ < queue_.size() || !dones_.empty()) return -1;
    for (std::size_t i = 0; i < lent_; ++i) {
        if (queue_[i].kind == Item::Kind::frame) return -1;  // the next poll has its done
    }
    armed_ = true;
    return wake_.get();
}

void SelfRail::wake() noexcept {
    if (!armed_) return;
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one));  // cannot fill up: poll empties it first
}

}  // namespace railmux::transports::self

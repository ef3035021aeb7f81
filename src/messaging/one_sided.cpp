// Engine: one-sided operations: memory that peers may reach, and reaching into theirs.
#include <algorithm>

#include "messaging/engine.hpp"

namespace railmux::messaging {

// --- Regions ---------------------------------------------------------------------------------------------------------

MemoryRegion Engine::register_memory(std::span<std::byte> memory, Rights rights) {
    const Lock lock(*this);
    if (memory.empty())
        throw Error(ErrorCode::invalid_argument, "register_memory without memory", "give it some bytes");
    if (rights != Rights::read && rights != Rights::write && rights != Rights::read_write) {
        throw Error(ErrorCode::invalid_argument, "register_memory with unknown rights", "use a value of Rights");
    }
    const auto region = target_.add(memory, rights);
    lasting_.add(region, memory);
    return {*this, region};
}

RemoteKey Engine::region_key(std::uint32_t region) {
    const Lock lock(*this);
    return target_.key(region);
}

std::span<std::byte> Engine::region_memory(std::uint32_t region) {
    const Lock lock(*this);
    return target_.memory(region);
}

std::uint64_t Engine::region_notified(std::uint32_t region) {
    const Lock lock(*this);
    return target_.notified(region);
}

void Engine::withdraw(std::uint32_t region) noexcept {
    const Lock lock(*this);
    lasting_.remove(region, target_.memory(region));
    target_.withdraw(region);
    await_readers(region);
    target_.remove(region);
}

/// Until nobody reads from the region any more. Who has taken nothing for close.timeout is given up.
void Engine::await_readers(std::uint32_t region) noexcept {
    const auto unread = [&] { return target_.readers(region).empty(); };
    std::vector<std::uint32_t> given_up;  // the rails let go of what they were given
    for (auto before = target_.readers(region); !before.empty();) {
        // Not progress_until: this cannot throw, and no callback is needed for it to end.
        if (progress_.until(*this, unread, now() + close_limit())) return;
        const auto readers = target_.readers(region);
        for (const auto& reader : readers) {
            const auto known = std::ranges::find(before, reader.peer, &Target::Reader::peer);
            const bool moved = known == before.end() || reader.taken != known->taken;
            if (moved || std::ranges::find(given_up, reader.peer) != given_up.end()) continue;
            rails_.give_up(reader.peer, "it did not take what it gets from memory that is no longer registered", now());
            given_up.push_back(reader.peer);
        }
        before = target_.readers(region);
    }
}

Request Engine::inotified(const MemoryRegion& region, std::uint64_t count, Completion&& done) {
    const Lock lock(*this);
    refuse_if_left();
    if (region.engine_ != this) {
        throw Error(ErrorCode::invalid_argument, "this region is empty, or belongs to another context",
                    "use a MemoryRegion of this very context");
    }
    Operation& operation = operations_.begin(false, std::move(done));
    const auto slot = operation.index;
    target_.await(region.slot_, count, operation);
    return {*this, slot};
}

// --- Accesses --------------------------------------------------------------------------------------------------------

Request Engine::iput(Peer to, const RemotePlace& place, std::span<const ConstBuffer> gather, const PutOptions& options,
                     Completion&& done) {
    const Lock lock(*this);
    const auto peer = partner(to);
    Operation& operation = operations_.begin(false, std::move(done));
    add_source(operation, gather);
    operation.peer = peer;
    Access& access = origin_.begin(operation, AccessKind::put, place);
    access.put = options;
    return start(access, operation);
}

Request Engine::iget(Peer from, const RemotePlace& place, std::span<const MutableBuffer> scatter, Completion&& done) {
    const Lock lock(*this);
    const auto peer = partner(from);
    Operation& operation = operations_.begin(false, std::move(done));
    for (const auto part : scatter) operation.add({part.data(), part.size(), 0});
    operation.peer = peer;
    return start(origin_.begin(operation, AccessKind::get, place), operation);
}

Request Engine::atomic(Peer at, const RemotePlace& place, const AtomicCall& call, Completion&& done) {
    const Lock lock(*this);
    const auto peer = partner(at);
    Operation& operation = operations_.begin(false, std::move(done));
    operation.peer = peer;
    Access& access = origin_.begin(operation, AccessKind::atomic, place);
    access.atomic = call;
    return start(access, operation);
}

Request Engine::start(Access& access, const Operation& operation) {
    const auto slot = operation.index;
    const auto bytes = access.kind == AccessKind::put ? operation.bytes : 0;
    now_ = now();
    const bool last = ends_burst(operation.peer, bytes);
    sender_.close_bundles(now_);
    origin_.start(access, now_);
    unlooked_bytes_ += bytes;
    if (last) flush_burst();
    return {*this, slot};
}

Request Engine::iflush(Peer to, Completion&& done) {
    const Lock lock(*this);
    const auto peer = partner(to);
    Operation& operation = operations_.begin(false, std::move(done));
    const auto slot = operation.index;
    origin_.flush(operation, {&peer, 1});
    return {*this, slot};
}

Request Engine::iflush(Completion&& done) {
    const Lock lock(*this);
    refuse_if_left();
    Operation& operation = operations_.begin(false, std::move(done));
    const auto slot = operation.index;
    origin_.flush_all(operation);
    return {*this, slot};
}

}  // namespace railmux::messaging

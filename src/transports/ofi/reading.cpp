// Readable, and gets of ofi::Rail.
#include "transports/ofi/reading.hpp"

#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "base/crypto.hpp"
#include "transports/ofi/rail.hpp"

namespace railmux::transports::ofi {

Readable::Readable(const Port& port) {
    if (!port.reads) return;
    pages_.emplace(port, sizeof(PublicBoard));
    board_ = std::construct_at(reinterpret_cast<PublicBoard*>(pages_->data()));
    board_->key = base::random_u64() | 1;  // not zero
}

BoardPlace Readable::place() const noexcept {
    if (board_ == nullptr) return {};
    return {board_->key, reinterpret_cast<std::uintptr_t>(board_)};
}

void Readable::show(const RegionKey& key, std::span<const std::byte> memory) noexcept {
    if (board_ != nullptr) board_->board.show(key, memory);
}

void Readable::hide(const RegionKey& key) noexcept {
    if (board_ != nullptr) board_->board.hide(key);
}

// --- Getting ---------------------------------------------------------------------------------------------------------

/// Whether the other side's memory can be read, at once: where this kernel does not let shm do it, the other side's provider
/// would have to, later.
bool Rail::can_read(Link& link) noexcept {
    if (!endpoint_->port.reads || link.board.key == 0) return false;
    if (link.tried) return true;
    if (std::ranges::any_of(getting_, [](const Get* get) { return !get->posted(); })) return false;
    auto& get = new_get(link);
    if (post_read(get, get.reads[0], {reinterpret_cast<std::byte*>(&get.before.secret), sizeof get.before.secret},
                  link.board.address, link.board.key) != 0) {
        endpoint_->gets.give(get);
        return false;  // not yet
    }
    getting_.push_back(&get);
    link.tried = true;
    if (get.before.secret.load(std::memory_order_relaxed) != link.board.key) link.board = {};
    return link.board.key != 0;
}

bool Rail::prefers_get(LinkId id, std::uint64_t /*bytes*/) noexcept {
    [[maybe_unused]] const auto scope = guard_.enter();
    Link* const link = links_.find(id, Phase::up);
    return link != nullptr && can_read(*link);
}

Get& Rail::new_get(const Link& link) {
    auto& get = endpoint_->gets.take();
    get.link = link.id;
    get.peer = link.peer;
    get.board = link.board;
    get.awaited = false;
    get.status = WorkStatus::ok;
    get.count = get.next = get.under_way = 0;
    get.before.secret.store(0, std::memory_order_relaxed);
    get.after.secret.store(0, std::memory_order_relaxed);
    return get;
}

Rail::Sent Rail::begin_get(Link& link, const Work& work) noexcept {
    const bool behind = std::ranges::any_of(getting_, [](const Get* get) { return !get->posted(); });
    if (link.gets == max_gets || behind) return Sent::not_now;
    if (!can_read(link) || work.remote.id >= Board::size) {
        events_.done(link.id, work.cookie, WorkStatus::access_denied);
        return Sent::yes;
    }
    auto& get = new_get(link);
    get.cookie = work.cookie;
    get.offset = work.offset;
    get.key = work.remote;
    get.count = work.segments.size();
    std::ranges::copy(work.segments, get.segments.begin());
    get.awaited = true;
    ++link.gets;
    getting_.push_back(&get);
    post_reads(get);
    return Sent::yes;
}

/// Those of its reads that the provider has room for.
void Rail::post_reads(Get& get) noexcept {
    const auto entry = get.board.address + offsetof(PublicBoard, board) + get.key.id * sizeof(Shown);
    auto offset = get.offset;
    for (std::size_t i = 1; i < get.next && i <= get.count; ++i) offset += get.segments[i - 1].size;
    for (; !get.posted(); ++get.next) {
        auto& read = get.reads[get.next];
        ssize_t code = 0;
        if (get.next == 0 || get.next > get.count) {
            auto& to = get.next == 0 ? get.before : get.after;
            code = post_read(get, read, {reinterpret_cast<std::byte*>(&to), sizeof to}, entry, get.board.key);
        } else {
            const auto& segment = get.segments[get.next - 1];
            const auto place = get.before.address_of(get.key, offset, segment.size);
            if (place == 0) {
                get.status = WorkStatus::access_denied;
                return;
            }
            if (segment.size > 0) code = post_read(get, read, {segment.data, segment.size}, place, get.key.secret);
            if (code == 0) offset += segment.size;
        }
        if (code == -FI_EAGAIN) return;
        if (code != 0) get.status = WorkStatus::link_lost;
    }
}

ssize_t Rail::post_read(Get& get, Get::Read& read, std::span<std::byte> to, std::uint64_t address,
                        std::uint64_t key) noexcept {
    read.kind = Operation::Kind::read;
    read.get = &get;
    const auto code = fi_read(endpoint_->port.endpoint.get(), to.data(), to.size(), nullptr, get.peer->at, address, key,
                              &read.context);
    if (code != 0) return code;
    ++get.under_way;
    ++get.peer->sending;
    return 0;
}

void Rail::read_over(Get& get, bool good) noexcept {
    --get.under_way;
    --get.peer->sending;
    if (!good && get.status == WorkStatus::ok) get.status = WorkStatus::access_denied;
}

/// Posts what is left of the first that is not posted, so that reads are over in the order of the gets, and ends those that are
/// over.
void Rail::go_on_with_gets() noexcept {
    const auto behind = std::ranges::find_if(getting_, [](const Get* get) { return !get->posted(); });
    if (behind != getting_.end()) post_reads(**behind);
    std::erase_if(getting_, [&](Get* get) {
        if (!get->posted() || get->under_way > 0) return false;
        if (std::exchange(get->awaited, false)) {
            if (get->status == WorkStatus::ok && !get->after.is(get->key)) get->status = WorkStatus::access_denied;
            events_.done(get->link, get->cookie, get->status);
            if (Link* link = links_.find(get->link); link != nullptr) --link->gets;
        }
        endpoint_->gets.give(*get);
        return true;
    });
}

}  // namespace railmux::transports::ofi

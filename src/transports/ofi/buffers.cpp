#include "transports/ofi/buffers.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "transports/ofi/peers.hpp"

namespace railmux::transports::ofi {

namespace {

// Two megabytes of room for what comes between two looks, 100 us at 160 Gbit/s; four where messages are larger.
constexpr std::size_t multi_bytes = 512 * 1024;
constexpr std::size_t multi_messages = 4;  // at least, of the largest
constexpr std::size_t multi_wanted = 4;
constexpr std::size_t single_wanted = 64;
// Messages that wait for an earlier one hold their buffer; how far this can go is up to the senders.
constexpr std::size_t growth = 16;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

SendBuffers::SendBuffers(const Port& port) noexcept
    : port_(port),
      common_{.room = aligned(put_overhead + piece_bytes), .chunk = 16},
      large_{.room = aligned(port.message_bytes), .chunk = 4} {}

SendBuffer* SendBuffers::take(std::size_t bytes) {
    auto& size = of(bytes);
    assert(bytes <= size.room);
    if (size.free.empty() && !grow(size)) return nullptr;
    auto* buffer = size.free.back();  // the one used last is still in the caches
    size.free.pop_back();
    return buffer;
}

bool SendBuffers::grow(Size& size) {
    if (size.all.size() * size.room >= most_bytes) return false;
    try {
        pages_.emplace_back(port_, size.chunk * size.room);
    } catch (const Error&) {
        return false;  // there are fewer then; those there are come back
    }
    size.free.reserve(size.all.size() + size.chunk);
    for (std::size_t i = 0; i < size.chunk; ++i) {
        auto& buffer = size.all.emplace_back();
        buffer.data = pages_.back().data() + i * size.room;
        buffer.room = size.room;
        buffer.descriptor = pages_.back().descriptor();
        size.free.push_back(&buffer);
    }
    return true;
}

bool SendBuffers::mostly_stranded(std::size_t bytes) noexcept {
    const auto& all = of(bytes).all;
    const auto stranded = std::ranges::count_if(
        all, [](const SendBuffer& buffer) { return buffer.peer != nullptr && buffer.peer->links == 0; });
    return static_cast<std::size_t>(stranded) > all.size() / 2;
}

const SendBuffer* SendBuffers::oldest() const noexcept {
    const SendBuffer* oldest = nullptr;
    for (const auto* size : {&common_, &large_}) {
        for (const auto& buffer : size->all) {
            if (buffer.peer == nullptr || buffer.number == 0) continue;
            if (oldest == nullptr || buffer.number < oldest->number) oldest = &buffer;
        }
    }
    return oldest;
}

void SendBuffers::unregister() noexcept {
    for (auto& pages : pages_) pages.unregister();
}

ReceiveBuffers::ReceiveBuffers(const Port& port) noexcept
    : port_(port),
      bytes_(port.multi_receive ? std::max(multi_bytes, multi_messages * aligned(port.message_bytes))
                                : aligned(port.message_bytes)),
      wanted_(port.multi_receive ? multi_wanted : single_wanted),
      most_(wanted_ * growth) {}

void ReceiveBuffers::begin() {
    if (const auto trouble = post(); !trouble.empty()) {
        throw Error(
            ErrorCode::system, "no receive could be posted: " + trouble,
            "see FI_LOG_LEVEL=warn for what libfabric says, or exclude the provider with RAILMUX_OFI_PROVIDERS");
    }
}

std::string ReceiveBuffers::post() {
    while (posted_ < wanted_) {
        if (idle_.empty()) {
            if (buffers_.size() >= most_) return {};
            try {
                idle_.push_back(&buffers_.emplace_back(port_, bytes_));
            } catch (const Error& error) {
                return posted_ > 0 ? std::string() : error.what();
            }
        }
        auto& buffer = *idle_.back();
        const iovec piece{buffer.pages.data(), buffer.bytes};
        void* descriptor = buffer.pages.descriptor();
        fi_msg message{};
        message.msg_iov = &piece;
        message.desc = &descriptor;
        message.iov_count = 1;
        message.addr = FI_ADDR_UNSPEC;
        message.context = &buffer.context;
        const auto code =
            fi_recvmsg(port_.endpoint.get(), &message, FI_COMPLETION | (port_.multi_receive ? FI_MULTI_RECV : 0));
        if (code == -FI_EAGAIN) return {};  // with the next look
        if (code != 0) return in_words(code);
        idle_.pop_back();
        buffer.posted = true;
        buffer.came = buffer.end = 0;
        ++posted_;
    }
    return {};
}

/// Messages stand one behind the other, and the last is the one that leaves too little room for another: when that has come,
/// and there is no hole before it, all have.
bool ReceiveBuffers::whole(const ReceiveBuffer& buffer) const noexcept {
    if (!port_.fetches) return true;
    return !buffer.spoiled && buffer.came == buffer.end && buffer.bytes - buffer.end < port_.message_bytes;
}

void ReceiveBuffers::came(ReceiveBuffer& buffer, std::span<const std::byte> message) noexcept {
    buffer.came += message.size();
    buffer.end = std::max(buffer.end, static_cast<std::size_t>(message.data() + message.size() - buffer.pages.data()));
    if (buffer.posted || !port_.fetches || !whole(buffer)) return;
    --awaiting_;
    if (buffer.views == 0) idle_.push_back(&buffer);
}

/// What is left of its buffer is never posted again: whoever fails to fetch one message may still be fetching others. Another
/// one may take its place.
void ReceiveBuffers::lost(ReceiveBuffer& buffer) noexcept {
    if (!port_.fetches || std::exchange(buffer.spoiled, true)) return;
    ++most_;
    if (!buffer.posted) --awaiting_;
}

void ReceiveBuffers::filled(ReceiveBuffer& buffer) noexcept {
    if (!buffer.posted) return;
    buffer.posted = false;
    --posted_;
    if (!whole(buffer)) {
        if (!buffer.spoiled) ++awaiting_;
    } else if (buffer.views == 0) {
        idle_.push_back(&buffer);
    }
}

void ReceiveBuffers::drop_view(ReceiveBuffer& buffer) noexcept {
    if (--buffer.views == 0 && !buffer.posted && whole(buffer)) idle_.push_back(&buffer);
}

void ReceiveBuffers::unregister() noexcept {
    for (auto& buffer : buffers_) buffer.pages.unregister();
}

}  // namespace railmux::transports::ofi

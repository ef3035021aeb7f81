#include "transports/ofi/buffers.hpp"

#include <rdma/fi_errno.h>

#include <algorithm>
#include <utility>

namespace railmux::transports::ofi {

namespace {

// Two megabytes of room for what comes between two looks: 100 us at 160 Gbit/s.
constexpr std::size_t multi_bytes = 512 * 1024;
constexpr std::size_t multi_wanted = 4;
constexpr std::size_t single_wanted = 64;
// Messages that wait for an earlier one hold their buffer; how far this can go is up to the senders.
constexpr std::size_t growth = 16;

constexpr std::size_t aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

SendBuffer* SendBuffers::take() {
    if (free_.empty()) {
        if (buffers_.size() >= most) return nullptr;
        try {
            pages_.emplace_back(port_, chunk * aligned(message_bytes));
        } catch (const Error&) {
            return nullptr;  // there are fewer then; those there are come back
        }
        free_.reserve(buffers_.size() + chunk);
        for (std::size_t i = 0; i < chunk; ++i) {
            auto& buffer = buffers_.emplace_back();
            buffer.data = pages_.back().data() + i * aligned(message_bytes);
            buffer.descriptor = pages_.back().descriptor();
            free_.push_back(&buffer);
        }
    }
    auto* buffer = free_.back();  // the one used last is still in the caches
    free_.pop_back();
    return buffer;
}

void SendBuffers::unregister() noexcept {
    for (auto& pages : pages_) pages.unregister();
}

ReceiveBuffers::ReceiveBuffers(const Port& port)
    : port_(port),
      bytes_(port.multi_receive ? multi_bytes : aligned(message_bytes)),
      wanted_(port.multi_receive ? multi_wanted : single_wanted),
      most_(wanted_ * growth) {
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
    return !buffer.spoiled && buffer.came == buffer.end && buffer.bytes - buffer.end < message_bytes;
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

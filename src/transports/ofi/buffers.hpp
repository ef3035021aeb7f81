// The buffers of an ofi rail. Each send has one of its own until the provider is through with it, so that a caller's memory
// is free at once and a link can end while its messages are on their way. Receives share a few large ones, each of which the
// provider fills with many messages (or one message each, where it cannot). Providers that fetch large messages by themselves
// call a buffer filled when its room is given away, while messages are still to come into it: those are waited for.
//
// Threads: one engine at a time, as the rail that owns them.
// Lifetime: addresses are good as long as the pool. unregister() before the endpoint is closed, the end of the pools after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "transports/ofi/fabric.hpp"
#include "transports/ofi/wire.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::ofi {

struct Peer;

struct SendBuffer : Operation {
    std::byte* data = nullptr;
    std::size_t room = 0;
    std::size_t bytes = 0;  // of the message
    void* descriptor = nullptr;
    Peer* peer = nullptr;      // where it goes; nullptr: it is free
    LinkId link;               // whose it is; the link may be gone
    std::uint64_t number = 0;  // of those that are told of in order (Obstruction); 0: it is told of at once
};

class SendBuffers {
public:
    explicit SendBuffers(const Port& port) noexcept;

    /// One with room for so many bytes. nullptr: all are on their way, or there is no memory for more.
    [[nodiscard]] SendBuffer* take(std::size_t bytes);
    void give(SendBuffer& buffer) noexcept {
        buffer.peer = nullptr;
        of(buffer.room).free.push_back(&buffer);
    }
    /// Whether most of those with room for so many bytes are on their way to peers without links.
    [[nodiscard]] bool mostly_stranded(std::size_t bytes) noexcept;
    /// The one with the least number of those that are on their way and have one; nullptr: there is none.
    [[nodiscard]] const SendBuffer* oldest() const noexcept;
    [[nodiscard]] std::size_t on_their_way() const noexcept {
        return common_.all.size() - common_.free.size() + large_.all.size() - large_.free.size();
    }
    void unregister() noexcept;

private:
    static constexpr std::size_t most_bytes = 64 << 20;  // of each of the two sizes

    struct Size {
        std::size_t room = 0;
        std::size_t chunk = 0;  // made at a time
        std::deque<SendBuffer> all{};
        std::vector<SendBuffer*> free{};
    };
    [[nodiscard]] Size& of(std::size_t bytes) noexcept { return bytes <= common_.room ? common_ : large_; }
    [[nodiscard]] bool grow(Size& size);

    const Port& port_;
    std::vector<Pages> pages_;
    Size common_;
    Size large_;  // pieces of puts, where the provider fetches them
};

struct ReceiveBuffer : Operation {
    Pages pages;
    std::size_t bytes = 0;
    std::uint32_t views = 0;  // messages in it that are lent or wait for their turn
    bool posted = false;
    std::size_t came = 0;  // bytes of the messages that have come into it
    std::size_t end = 0;   // ... and where the furthest of them ends
    bool spoiled = false;  // one of them never comes, and nobody knows where it would have ended

    ReceiveBuffer(const Port& port, std::size_t size) : pages(port, size), bytes(size) { receive = true; }

    /// Of a completion that has one.
    [[nodiscard]] std::span<const std::byte> message(const fi_cq_data_entry& completion,
                                                     const Port& port) const noexcept {
        return {port.multi_receive ? static_cast<const std::byte*>(completion.buf) : pages.data(), completion.len};
    }
};

class ReceiveBuffers {
public:
    explicit ReceiveBuffers(const Port& port) noexcept;

    /// Posts the first ones. Throws Error when the provider refuses; some may have been posted then.
    void begin();
    /// Posts what nobody looks at any more; more buffers, where all are looked at. Empty, or the provider's error.
    [[nodiscard]] std::string post();
    /// A message is there.
    void came(ReceiveBuffer& buffer, std::span<const std::byte> message) noexcept;
    /// A message will not come.
    void lost(ReceiveBuffer& buffer) noexcept;
    /// The provider has filled it, or given away all of its room.
    void filled(ReceiveBuffer& buffer) noexcept;
    void drop_view(ReceiveBuffer& buffer) noexcept;
    [[nodiscard]] bool idle() const noexcept { return !idle_.empty(); }
    /// Every buffer that there may be is looked at.
    [[nodiscard]] bool exhausted() const noexcept {
        return posted_ == 0 && awaiting_ == 0 && idle_.empty() && buffers_.size() >= most_;
    }
    void unregister() noexcept;

private:
    [[nodiscard]] bool whole(const ReceiveBuffer& buffer) const noexcept;

    const Port& port_;
    std::size_t bytes_ = 0;   // of one
    std::size_t wanted_ = 0;  // posted at a time
    std::size_t most_ = 0;    // in all
    std::size_t posted_ = 0;
    std::size_t awaiting_ = 0;  // neither, because messages are still to come into them
    std::deque<ReceiveBuffer> buffers_;
    std::vector<ReceiveBuffer*> idle_;  // neither posted nor looked at
};

}  // namespace railmux::transports::ofi

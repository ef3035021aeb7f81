// EarlyAcks: which messages the kernel is to acknowledge as they come, and not as they are read: see acknowledge_early.
//
// What comes as they are read makes reading take longer, and in a conversation the reader is who holds things up. In a flood
// the sender is: and as messages come acknowledgements take its time. So what carries no more than a message that goes along
// with its header is acknowledged early, and longer messages are while each is answered; bulk never is.
//
// Threads: pure.
// Lifetime: a value; of one connection.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/in_line.hpp"

namespace railmux::transports::tcp {

class EarlyAcks {
public:
    enum class Of : std::uint8_t { none, short_messages, long_messages };

    // Above every message that goes along with its header.
    static constexpr std::size_t longest_short = 20'000;
    // With a higher mark puts are held up: 1 MiB took 1.07 of the time with one of 66'000.
    static constexpr std::size_t longest = 48'000;
    // So often in a row a link is read without being slept on, and so many long messages are answered, before it pays: a turn
    // is a system call.
    static constexpr std::uint8_t reads = 16;

    [[nodiscard]] Of now() const noexcept { return now_; }

    /// A read brought so much, of a link that nobody sleeps on. True: now() is another one.
    [[nodiscard]] RAILMUX_IN_LINE bool came(std::size_t bytes) noexcept {
        if (now_ == Of::none) [[unlikely]] {
            if (++reads_ < reads) return false;
            now_ = Of::short_messages;
            return true;
        }
        return bytes > longest_short && came_long(bytes);
    }
    /// Something was sent.
    void sent() noexcept { answered_ = true; }
    /// Bulk comes. True: as above.
    [[nodiscard]] bool bulk() noexcept {
        long_ = 0;
        return std::exchange(now_, std::min(now_, Of::short_messages)) == Of::long_messages;
    }
    /// The link may be slept on. True: as above.
    [[nodiscard]] bool end() noexcept { return std::exchange(*this, {}).now_ != Of::none; }

private:
    [[nodiscard]] bool came_long(std::size_t bytes) noexcept {
        if (!std::exchange(answered_, false) || bytes > longest) return bulk();
        if (now_ == Of::long_messages || ++long_ < reads) return false;
        now_ = Of::long_messages;
        return true;
    }

    Of now_ = Of::none;
    std::uint8_t reads_ = 0;
    std::uint8_t long_ = 0;  // messages in a row that were answered
    bool answered_ = false;  // something was sent since the last long one
};

}  // namespace railmux::transports::tcp

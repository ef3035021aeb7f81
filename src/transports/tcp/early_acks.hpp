// EarlyAcks: what the kernel is to acknowledge as it comes, and not as it is read: see acknowledge_early.
//
// An acknowledgement that leaves from within a read makes that take longer, and in a conversation the reader is who holds
// things up. In a flood the sender is, and it is the one whose time an acknowledgement takes that leaves as something comes.
// So what is no more than a message that goes along with its header is acknowledged early; and more is, while reads that bring
// so much are waited for, and something is sent between any two of them; bulk never is. A message may come by several reads:
// then nothing is gained, or each counts.
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
    // So often a link is read without being slept on, and so many long reads are part of a conversation, before it pays: a
    // turn is a system call.
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
    /// There was nothing to read.
    void waited() noexcept { waited_ = true; }
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
        const bool conversing = answered_ && waited_ && bytes <= longest;
        answered_ = waited_ = false;
        if (!conversing) return bulk();
        if (now_ == Of::long_messages || ++long_ < reads) return false;
        now_ = Of::long_messages;
        return true;
    }

    Of now_ = Of::none;
    std::uint8_t reads_ = 0;
    std::uint8_t long_ = 0;  // long reads in a row, but for short ones, that were part of a conversation
    bool answered_ = false;  // something was sent since the last long one,
    bool waited_ = false;    // and there was nothing to read for a moment
};

}  // namespace railmux::transports::tcp

// Stamps: when the kernel of this host had what is read from a socket, which is earlier than somebody looked.
//
// Threads: pure but for the socket; one thread at a time a socket.
// Lifetime: values.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/clock.hpp"
#include "base/in_line.hpp"

namespace railmux::transports::tcp {

// What is shorter shows nothing of a network (sched::Pace::timed_bytes), and to read two clocks takes little beside what it
// takes to read so many bytes.
inline constexpr ssize_t stamped_bytes = 1024;

// Nor is a lone message of a packet or so worth a stamp: whoever waits for it looks all the time. With stamps 1 KiB and back
// takes 3 % longer.
inline constexpr ssize_t worth_stamps = 2048;

// On gigabit networks these come within some microseconds.
inline constexpr std::size_t stamped_tail = 1024;

/// The clock that people set, which the kernel's stamps are of, against ours.
class WallClock {
public:
    /// A moment of it that is over, by base::now_ns. 0: one of the two was set since this was last asked, or the process stood
    /// still between looking at them, so nobody knows.
    [[nodiscard]] base::Nanoseconds by_ours(base::Nanoseconds stamp) noexcept;

private:
    base::Nanoseconds ahead_ = 0;  // of ours
    base::Nanoseconds at_ = 0;     // when that was seen; 0: never
};

/// Which reads of a socket are stamped, if stamps are wanted.
///
/// While any socket of a host has them the kernel looks at a clock for each packet of every one, which takes lone small
/// messages 5 % longer; and a read that takes its stamp along takes longer, too. So the kernel is told to begin when something
/// has come that is worth it, and to end when nothing has for long; and only reads soon after such a one, as small messages may
/// come in between, take theirs along. To begin and to end are some 10 us of work, for all processors of the host.
class Stamping {
public:
    enum class Turn : std::uint8_t { none, begin, end };

    void want() noexcept { wanted_ = true; }
    /// The kernel does not know how: nobody is to ask again.
    void give_up() noexcept {
        *this = {};
        impossible_ = true;
    }
    /// The next read is to take its stamp along.
    [[nodiscard]] bool takes() const noexcept { return begun_ && small_ < small_taken; }
    /// What the kernel is to be told after a read that brought so many bytes, one at least.
    [[nodiscard]] RAILMUX_IN_LINE Turn came(ssize_t bytes) noexcept {
        if (bytes >= worth_stamps) {
            small_ = 0;
            if (begun_ || !wanted_ || impossible_) return Turn::none;
            begun_ = true;
            return Turn::begin;
        }
        if (!begun_ || ++small_ < small_until_end) return Turn::none;
        begun_ = false;
        return Turn::end;
    }

    // So many small reads after one that was worth it take theirs along,
    static constexpr std::uint32_t small_taken = 16;
    // ... and after so many, 5 ms and more, the kernel is told to end: then beginning and ending take some thousandths at most.
    static constexpr std::uint32_t small_until_end = 1024;

private:
    bool impossible_ = false;
    bool wanted_ = false;
    bool begun_ = false;       // the kernel has been told to note when something comes
    std::uint32_t small_ = 0;  // reads since one that was worth it
};

/// Tells the kernel to begin, or to end, to note when what the socket receives comes (SO_TIMESTAMPING). False: it does not know
/// how.
[[nodiscard]] bool set_stamping(int socket, Stamping::Turn turn) noexcept;

/// Reads what is there, as readv does. `came`, by base::now_ns: when the kernel had the last of it; 0: it does not say, or it
/// is too little for anybody to ask.
[[nodiscard]] ssize_t read_stamped(int socket, std::span<iovec> into, WallClock& clock,
                                   base::Nanoseconds& came) noexcept;

}  // namespace railmux::transports::tcp

// What the rails are and what they carried.
//
// Threads: plain values, copied out of the context under its lock.
// Lifetime: own everything they show.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <railmux/message.hpp>

namespace railmux {

/// One local network interface opened (or not) through one transport.
struct RailInfo {
    std::string name;       ///< "tcp:eth1"
    std::string transport;  ///< "tcp"
    std::string device;     ///< "eth1"
    bool usable = false;
    /// Why it is not usable, off by default, or merged with another; or, of one in use, what was chosen for it, as the GID of
    /// a RoCE port. Mostly empty.
    std::string reason;
    std::string cure;  ///< what to do to use it anyway; may be empty
    /// The processors of both ends move its bytes (memory, the loopback). Of such rails to one peer the fastest is used.
    bool by_processors = false;
    std::uint64_t speed_bps = 0;  ///< link speed in bits per second; 0: unknown
    int numa_node = -1;           ///< -1: unknown or not applicable
    std::string kind;             ///< link kind as the kernel tells it: "ethernet", "veth", "bridge", "vxlan", ...
    std::vector<std::string> addresses;
};

/// What one rail carried to and from one peer.
struct RailTraffic {
    std::string rail;
    Peer peer;
    std::uint64_t sent_bytes = 0;  ///< payload of messages, without any header
    std::uint64_t received_bytes = 0;
    std::uint64_t sent_frames = 0;
    std::uint64_t received_frames = 0;
    std::uint64_t resent_frames = 0;     ///< sent again after a link died
    std::uint64_t duplicate_frames = 0;  ///< received again and dropped
    std::uint64_t corrupted_frames = 0;  ///< of links with checksums: found to be not what was sent, and not believed
    std::uint64_t links_lost = 0;
    /// Bytes of large messages that were copied into memory that the rail's device knows (RDMA, libfabric).
    std::uint64_t copied_bytes = 0;
    /// Registrations of memory with an RDMA device, for large messages from and to this peer ...
    std::uint64_t registrations = 0;
    std::uint64_t registered_bytes = 0;
    /// ... and how often one that was there already, of memory registered by the application, made another needless.
    std::uint64_t registrations_reused = 0;

    // Predictions against what happened, of a sample: every sixty-fourth frame, where it was the newest one that an
    // acknowledgement told of, because others may have arrived at any time before it.
    std::uint64_t timed_frames = 0;
    std::chrono::nanoseconds predicted{0};  ///< delivery of those frames, their sum
    std::chrono::nanoseconds real{0};       ///< the same as it was
    std::chrono::nanoseconds error{0};      ///< the sum of the differences, each without its sign
};

}  // namespace railmux

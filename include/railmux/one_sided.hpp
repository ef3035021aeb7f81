// One-sided operations: memory that peers may read and write, and the keys by which they do (docs/onesided.md).
//
// Threads: RemoteKey and the options are values. A MemoryRegion as a Request: one thread at a time.
// Lifetime: a MemoryRegion must not outlive its Context; the memory must outlive the MemoryRegion.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include <railmux/message.hpp>

namespace railmux {

namespace messaging {
class Engine;

// How the calls of Context on words of either width reach the engine.
enum class AtomicOp : std::uint8_t { fetch_add = 0, swap = 1, compare_swap = 2 };
struct AtomicCall {
    AtomicOp op{};
    std::uint8_t width = 0;  // bytes: 4 or 8
    std::uint64_t operand = 0;
    std::uint64_t expected = 0;  // compare_swap
    void* before = nullptr;      // what was there; `width` bytes
};
}  // namespace messaging

/// What peers may do with a region. Atomics need both rights.
enum class Rights : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Names a region to other processes: carry its bytes to them by any means. Whoever has it has the region's rights, over
/// every rail. It cannot be guessed, and is worth nothing once the region is gone, or at another process.
class RemoteKey {
public:
    static constexpr std::size_t size = 24;

    constexpr RemoteKey() noexcept = default;  ///< names nothing
    /// From what bytes() gave. Throws Error(invalid_argument) unless there are `size` of them.
    [[nodiscard]] static RemoteKey from(std::span<const std::byte> bytes);
    /// For the peer. They lie in this object: it must be there for as long as they are used, by an isend, say.
    [[nodiscard]] std::span<const std::byte, size> bytes() const noexcept { return bytes_; }
    friend bool operator==(const RemoteKey&, const RemoteKey&) noexcept = default;

private:
    std::array<std::byte, size> bytes_{};
};

/// A place in a peer's memory: `offset` bytes into the region that the key names.
struct RemotePlace {
    RemoteKey key;
    std::uint64_t offset = 0;
};

/// Memory of this process that peers may reach; made by Context::register_memory. When it is destroyed its key is
/// withdrawn at once: operations that come later fail at their initiators. Puts under way into it fail, too, and write
/// nothing any more; gets under way are waited for, and a peer that takes nothing for `close.timeout` is given up. So
/// afterwards nobody touches the memory. Not to be destroyed in a Completion. One that was moved from is only good for
/// destruction and assignment.
class MemoryRegion {
public:
    MemoryRegion(MemoryRegion&& other) noexcept : engine_(std::exchange(other.engine_, nullptr)), slot_(other.slot_) {}
    MemoryRegion& operator=(MemoryRegion&& other) noexcept;
    MemoryRegion(const MemoryRegion&) = delete;
    MemoryRegion& operator=(const MemoryRegion&) = delete;
    ~MemoryRegion();

    [[nodiscard]] RemoteKey key() const;
    [[nodiscard]] std::span<std::byte> memory() const;
    /// Puts with `notify` whose bytes are all in place, from whomever, ever. Context::inotified waits for more.
    [[nodiscard]] std::uint64_t notified() const;
    /// Where most of the memory lies, on hosts that have it in several nodes (NUMA); -1 where the kernel does not tell, or no
    /// page is there yet. Best is the node of the rails that reach it (RailInfo::numa_node). Asks the kernel each time.
    [[nodiscard]] int numa_node() const;

private:
    friend class Context;
    friend class messaging::Engine;
    MemoryRegion(messaging::Engine& engine, std::uint32_t slot) noexcept : engine_(&engine), slot_(slot) {}

    messaging::Engine* engine_ = nullptr;
    std::uint32_t slot_ = 0;
};

/// What the end of a put's request says.
enum class PutEnd : std::uint8_t {
    local,   ///< the buffer may be reused; whether it arrived, or why not, the next flush says
    remote,  ///< the bytes are in place over there, or were refused
};

struct PutOptions {
    PutEnd end = PutEnd::local;
    bool notify = false;  ///< counted by the region (MemoryRegion::notified) once all bytes of this put are in place
};

/// What atomics work on, naturally aligned over there. They are atomic among each other, whoever issues them, and with
/// std::atomic_ref of the process that owns the memory; not with puts and gets.
template <typename T>
concept AtomicWord = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

}  // namespace railmux

// LastingRegions: memory that the application has registered (MemoryRegion), as the rails know it. A part of it is registered
// with a rail when that rail first reads or writes it, and stays so: messages, puts and gets from and to that memory cost no
// registration again. Peers never hear of these registrations: what they may reach is opened for each transfer
// (docs/architecture.md, "A large put opens its place for itself").
//
// Threads: one engine at a time.
// Lifetime: owned by the engine; refers to the rail manager. A part is let go when its memory is taken back and no transfer
// uses it any more; all of them before the rails close.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "rails/rail_manager.hpp"

namespace railmux::messaging {

class LastingRegions {
public:
    /// What is registered together: of 4 MiB the pages are held within a small part of the time that they take on the wire.
    static constexpr std::size_t chunk = 4 << 20;

    explicit LastingRegions(rails::RailManager& rails);
    ~LastingRegions();
    LastingRegions(const LastingRegions&) = delete;
    LastingRegions& operator=(const LastingRegions&) = delete;

    /// The application's region `id` is this memory, which may be that of others, too.
    void add(std::uint32_t id, std::span<std::byte> memory);
    /// It is no more. From now on nothing is found in it; what is in use stays registered until it is released.
    void remove(std::uint32_t id, std::span<std::byte> memory) noexcept;

    struct Known;
    struct Part {
        Known* known = nullptr;
        std::span<std::byte> memory;
        std::uint64_t local = 0;  // transports::Region::local
    };
    /// The part of registered memory in which `at` lies, for bulk of the peer over this rail. Released once for each call.
    [[nodiscard]] std::optional<Part> use(std::uint32_t peer, std::uint32_t rail, const std::byte* at);
    void release(Known& known) noexcept;
    /// Whether one of the application's regions has all of this in it.
    [[nodiscard]] bool covers(const transports::Segment& piece) const noexcept;

private:
    [[nodiscard]] Known* find(const std::byte* at) const noexcept;
    void close(Known& known) noexcept;

    rails::RailManager& rails_;
    std::multimap<const std::byte*, std::unique_ptr<Known>> known_;  // by where they begin
    std::size_t longest_ = 0;                                        // of all that have been known
    std::vector<std::unique_ptr<Known>> parting_;                    // removed, but in use
};

}  // namespace railmux::messaging

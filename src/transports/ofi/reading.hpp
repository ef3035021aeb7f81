// Readable: what others may read out of this process's memory by their provider (fi_read): the regions, and the board that says
// which they are. Get: one that this side has under way.
//
// Nobody checks a key: a get reads the region's place on the board, which says where the bytes are, then the bytes, then that
// place again: what was dropped meanwhile counts as not read (board.hpp).
//
// Threads: one engine at a time, as the rail that owns them.
// Lifetime: parts of an endpoint. A Get is the provider's until the completions of all its reads have come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "transports/board.hpp"
#include "transports/ofi/fabric.hpp"
#include "transports/ofi/link.hpp"
#include "transports/ofi/wire.hpp"
#include "transports/transport.hpp"

namespace railmux::transports::ofi {

/// Memory that others read. At its beginning stands the key of the place: who reads it there sees that reading works.
struct PublicBoard {
    std::uint64_t key = 0;
    Board board{};
};

class Readable {
public:
    /// Throws Error.
    explicit Readable(const Port& port);

    /// Zeros where the provider does not read.
    [[nodiscard]] BoardPlace place() const noexcept;
    void show(const RegionKey& key, std::span<const std::byte> memory) noexcept;
    void hide(const RegionKey& key) noexcept;

private:
    std::optional<Pages> pages_;  // a PublicBoard
    PublicBoard* board_ = nullptr;
};

struct Get {
    struct Read : Operation {
        Get* get = nullptr;
    };
    static constexpr std::size_t most_reads = max_segments + 2;

    LinkId link;
    Peer* peer = nullptr;
    BoardPlace board;
    std::uint64_t cookie = 0;
    std::uint64_t offset = 0;
    RegionKey key;
    std::array<Segment, max_segments> segments{};
    std::size_t count = 0;
    std::size_t next = 0;       // of its reads: the board, the segments, the board
    std::size_t under_way = 0;  // reads that the provider has
    bool awaited = false;       // its done has not been told
    WorkStatus status = WorkStatus::ok;
    Shown before{};
    Shown after{};
    std::array<Read, most_reads> reads{};

    /// No more of its reads will be posted.
    [[nodiscard]] bool posted() const noexcept { return !awaited || status != WorkStatus::ok || next == count + 2; }
};

/// Those of an endpoint.
class Gets {
public:
    [[nodiscard]] Get& take() {
        if (free_.empty()) free_.push_back(&all_.emplace_back());
        auto* const get = free_.back();
        free_.pop_back();
        return *get;
    }
    void give(Get& get) { free_.push_back(&get); }

private:
    std::deque<Get> all_;
    std::vector<Get*> free_;
};

}  // namespace railmux::transports::ofi

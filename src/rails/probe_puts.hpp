// ProbePuts: what one end of a link needs so that the messages of a full probe travel as an application's large ones do, put
// into their place: memory that the other end's puts go to, memory that its own come from, and where those go. These are two,
// as with most applications: what has just come in is in a cache, and to send that takes less.
//
// Threads: one engine at a time.
// Lifetime: owned by the link, until its last work is done; refers to its rail. The memory is open as long as it lives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/result.hpp"
#include "model/probe_wire.hpp"
#include "rails/frame.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

class ProbePuts {
public:
    /// nullptr where the rail has no puts, or no room.
    [[nodiscard]] static std::unique_ptr<ProbePuts> open(transports::Rail& rail);
    ~ProbePuts() = default;
    ProbePuts(const ProbePuts&) = delete;
    ProbePuts& operator=(const ProbePuts&) = delete;

    /// What the other end is to know.
    [[nodiscard]] model::ProbeMemory here() const noexcept {
        const auto& key = in_.region().key;
        return {.id = key.id, .secret = key.secret, .bytes = bytes_};
    }
    /// Where the other end's memory is, which begins to measure or answers that.
    void know(const model::ProbeMemory& there, std::uint8_t remote_rail) noexcept;
    /// The most that can be put there: 0 while the other end has told nothing.
    [[nodiscard]] std::uint64_t bytes_there() const noexcept { return bytes_there_; }

    /// Makes `frame` close a put of so many bytes, at most bytes_there().
    void attach(Frame& frame, std::uint64_t bytes, std::uint32_t rail) noexcept;
    /// The rail is done with such a frame.
    void done() noexcept { --under_way_; }

    /// This end has said that it wants no more; the other one has, too.
    void end() noexcept { ending_ = true; }
    void end_there() noexcept { ended_there_ = true; }
    [[nodiscard]] bool ended_there() const noexcept { return ended_there_; }
    [[nodiscard]] bool ending() const noexcept { return ending_ || ended_there_; }
    [[nodiscard]] bool over() const noexcept { return ended_there_ && under_way_ == 0; }

private:
    // Where memory begins within a page decides how fast processors copy it: it should be as with a program's large buffers.
    struct alignas(4096) Page {
        std::array<std::byte, 4096> bytes;
    };
    /// Registered as long as it lives, if there was room.
    class Memory {
    public:
        Memory(transports::Rail& rail, std::size_t bytes, transports::Access access)
            : rail_(rail),
              pages_(std::make_unique<Page[]>((bytes + sizeof(Page) - 1) / sizeof(Page))),
              region_(rail.add_region({data(), bytes}, access)) {}
        ~Memory() {
            if (region_) rail_.drop_region(region_.value());
        }
        Memory(const Memory&) = delete;
        Memory& operator=(const Memory&) = delete;

        [[nodiscard]] bool registered() const noexcept { return region_.ok(); }
        [[nodiscard]] const transports::Region& region() const noexcept { return region_.value(); }
        [[nodiscard]] std::byte* data() const noexcept { return pages_[0].bytes.data(); }

    private:
        transports::Rail& rail_;
        std::unique_ptr<Page[]> pages_;
        base::Result<transports::Region> region_;
    };

    ProbePuts(transports::Rail& rail, std::size_t bytes)
        : in_(rail, bytes, transports::Access::remote_write),
          out_(rail, bytes, transports::Access::local),
          bytes_(bytes) {}

    Memory in_;
    Memory out_;
    std::size_t bytes_;  // of each
    BulkTarget::Key key_{};
    BulkTarget target_{};
    std::uint64_t bytes_there_ = 0;
    std::uint32_t under_way_ = 0;
    bool ending_ = false;
    bool ended_there_ = false;
};

}  // namespace railmux::rails

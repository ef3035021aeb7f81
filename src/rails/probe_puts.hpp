// ProbePuts: what one end of a link needs so that the messages of a full probe travel as an application's large ones do, put
// into their place: memory that the other end's puts go to and its own come from, and where those go.
//
// Threads: one engine at a time.
// Lifetime: owned by the link, until its last work is done; refers to its rail. The memory is open as long as it lives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "model/probe_wire.hpp"
#include "rails/frame.hpp"
#include "transports/transport.hpp"

namespace railmux::rails {

class ProbePuts {
public:
    /// nullptr where the rail has no puts, or no room.
    [[nodiscard]] static std::unique_ptr<ProbePuts> open(transports::Rail& rail);
    ~ProbePuts() { rail_.drop_region(region_); }
    ProbePuts(const ProbePuts&) = delete;
    ProbePuts& operator=(const ProbePuts&) = delete;

    /// What the other end is to know.
    [[nodiscard]] model::ProbeMemory here() const noexcept {
        return {.id = region_.key.id, .secret = region_.key.secret, .bytes = bytes_};
    }
    /// Where the other end's memory is, which begins to measure or answers that.
    void know(const model::ProbeMemory& there, std::uint8_t remote_rail) noexcept;
    /// The most that can be put here; there: 0 while the other end has told nothing.
    [[nodiscard]] std::uint64_t bytes_here() const noexcept { return bytes_; }
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
    [[nodiscard]] static std::span<std::byte> bytes_of(const std::unique_ptr<Page[]>& memory, std::size_t bytes) {
        return {memory[0].bytes.data(), bytes};
    }

    ProbePuts(transports::Rail& rail, std::unique_ptr<Page[]> memory, std::size_t bytes,
              const transports::Region& region)
        : rail_(rail), memory_(std::move(memory)), bytes_(bytes), region_(region) {}

    transports::Rail& rail_;
    std::unique_ptr<Page[]> memory_;
    std::size_t bytes_;
    transports::Region region_;
    BulkTarget::Key key_{};
    BulkTarget target_{};
    std::uint64_t bytes_there_ = 0;
    std::uint32_t under_way_ = 0;
    bool ending_ = false;
    bool ended_there_ = false;
};

}  // namespace railmux::rails

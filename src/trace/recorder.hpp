// Recorder: writes a trace file (format.hpp). Records gather in a block of memory that is written when it is full, and at the
// end: no allocation and no system call per record.
//
// Threads: one engine at a time.
// Lifetime: owns the file, which others of this kind leave alone as long.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_descriptor.hpp"
#include "base/log.hpp"
#include "trace/format.hpp"

namespace railmux::trace {

class Recorder {
public:
    /// Makes the file, or empties it. Throws Error(invalid_config) when it cannot be written, or is being written.
    Recorder(std::string path, const Header& header, base::Logger& log);
    ~Recorder();
    Recorder(const Recorder&) = delete;
    Recorder& operator=(const Recorder&) = delete;

    void add(const LinkRecord& record) noexcept { append(record); }
    void add(const OfferRecord& record) noexcept { append(record); }
    void add(const AcknowledgedRecord& record) noexcept { append(record); }
    void add_peer(std::uint32_t peer, std::string_view name) noexcept;
    /// Room for a decision's options, to be filled in before the next call; `record` says how many. There is always room.
    [[nodiscard]] std::byte* add(const DecisionRecord& record) noexcept {
        const auto bytes = sizeof record + record.options * sizeof(OptionRecord);
        std::byte* to = room(bytes);
        std::memcpy(to, &record, sizeof record);
        return to + sizeof record;
    }

    /// Writes what has gathered.
    void flush() noexcept;
    void give_up(int error) noexcept;

    // More links to one peer than this are not recorded; rails are at most 64 on each side.
    static constexpr std::size_t most_options = most_rails * most_rails;

private:
    // 256 KiB are some 3,000 messages; writing them takes some tens of microseconds, so a message pays about 20 ns.
    static constexpr std::size_t block = 256 * 1024;
    static_assert(sizeof(DecisionRecord) + most_options * sizeof(OptionRecord) < block);

    template <typename Record>
    void append(const Record& record) noexcept {
        std::memcpy(room(sizeof record), &record, sizeof record);
    }
    [[nodiscard]] std::byte* room(std::size_t bytes) noexcept {
        if (bytes > block - used_) [[unlikely]]
            flush();
        return block_.get() + std::exchange(used_, used_ + bytes);
    }

    std::string path_;
    base::Logger& log_;
    base::FileDescriptor file_;
    std::unique_ptr<std::byte[]> block_;
    std::size_t used_ = 0;
};

}  // namespace railmux::trace

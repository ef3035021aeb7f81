// PrivateFolder: a folder of small files that this user alone writes, and several of their processes at once. A file is
// replaced whole (written beside its place, then renamed), so a reader meets the old content or the new one, never a mixture,
// and who reads or replaces waits for no lock. Nothing in it is worth an fsync: what a crash of the machine leaves is for the
// reader to judge.
//
// Threads: any, also several processes; the file system keeps them apart.
// Lifetime: holds the folder open, not its path: a folder that is removed meanwhile fails the calls that follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/file_descriptor.hpp"
#include "base/result.hpp"

namespace railmux::base {

class PrivateFolder {
public:
    enum class Missing : std::uint8_t {
        empty,  // no folder is a folder without files
        make,   // with those above it, each for this user only (0700)
    };
    /// An Error(permission) when the folder belongs to somebody else or others may write to it, Error(system) when it cannot
    /// be opened or made. Both name the path.
    [[nodiscard]] static Result<PrivateFolder> open(const std::string& path, Missing missing);

    /// The file's content; nothing when there is no such file. Error(permission): it is not a file that this user alone
    /// writes. Error(invalid_argument): it is longer than `most` bytes. Error(system): it cannot be read now.
    [[nodiscard]] Result<std::optional<std::string>> read(const std::string& name, std::size_t most) const;

    /// Puts a file with that content in place of what is there (0600). When it was written, by the file system's clock in ns;
    /// or Error(system), and what was there before is there still.
    [[nodiscard]] Result<Nanoseconds> replace(const std::string& name, const std::string& content) const;

    /// Puts a file with that content under a name that nobody else has claimed; it is claimed for as long as what is returned
    /// is open. In place of a file whose process has ended. Nothing when somebody has it.
    [[nodiscard]] Result<std::optional<FileDescriptor>> claim(const std::string& name,
                                                              const std::string& content) const;
    /// Removes what was claimed, if the file of that name is still that one.
    void give_up(const std::string& name, const FileDescriptor& claimed) const noexcept;
    /// Removes a file that a process which has ended had claimed, if its content begins so.
    void remove_leftover(const std::string& name, std::string_view beginning) const;

    /// Makes a file as young as one that is written now. One that has gone stays gone.
    void renew(const std::string& name) const noexcept;
    /// False when it was not there, or could not be removed.
    bool remove(const std::string& name) const noexcept;

    struct Entry {
        std::string name;
        Nanoseconds written = 0;  // as of replace
    };
    /// What is there, in no order; folders and hidden files are left out.
    [[nodiscard]] std::vector<Entry> list() const;
    /// Removes what processes that died while they wrote left here more than an hour before `now`, by the clock of replace.
    void sweep(Nanoseconds now) const;

private:
    PrivateFolder(FileDescriptor folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}
    [[nodiscard]] std::vector<Entry> everything() const;
    [[nodiscard]] Result<FileDescriptor> open_file(const std::string& name) const;
    [[nodiscard]] Result<FileDescriptor> write_part(const std::string& part, const std::string& content) const;
    [[nodiscard]] bool is(const std::string& name, const FileDescriptor& file) const noexcept;
    [[nodiscard]] Error trouble(const std::string& name, int error) const;

    FileDescriptor folder_;  // invalid: there is none
    std::string path_;       // for texts
};

}  // namespace railmux::base

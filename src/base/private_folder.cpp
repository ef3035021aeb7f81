#include "base/private_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/crypto.hpp"

namespace railmux::base {

namespace {

constexpr std::string_view part_prefix = ".part-";  // files being written
constexpr Nanoseconds part_age = 3600 * second;     // writing one takes milliseconds

std::string text_of(int error) { return std::strerror(error); }

/// Why what `status` tells of is not this user's alone; empty if it is.
std::string_view strangers_in(const struct stat& status) noexcept {
    if (status.st_uid != ::geteuid()) return "it belongs to another user";
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "others may write to it";
    return {};
}

/// The folder and those above it that are missing. Errors show when it is opened.
void make_folders(const std::string& path) {
    for (auto end = path.find('/', 1);; end = path.find('/', end + 1)) {
        ::mkdir(path.substr(0, end).c_str(), S_IRWXU);
        if (end == std::string::npos) return;
    }
}

bool write_all(int fd, std::string_view content) {
    while (!content.empty()) {
        const auto written = ::write(fd, content.data(), content.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return false;
        content.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

/// At most `most` bytes; false with errno set.
bool read_all(int fd, std::size_t most, std::string& content) {
    std::array<char, 4096> piece{};
    while (content.size() < most) {
        const auto got = ::read(fd, piece.data(), std::min(piece.size(), most - content.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return false;
        if (got == 0) return true;
        content.append(piece.data(), static_cast<std::size_t>(got));
    }
    return true;
}

/// By chance, not by process number: processes of several machines may share the folder.
std::string part_name() { return fmt::format("{}{:016x}", part_prefix, random_u64()); }

Nanoseconds time_of(const struct stat& status) noexcept {
    return Nanoseconds{status.st_mtim.tv_sec} * second + status.st_mtim.tv_nsec;
}

}  // namespace

Error PrivateFolder::trouble(const std::string& name, int error) const {
    return {ErrorCode::system, fmt::format("{}/{}: {}", path_, name, text_of(error))};
}

Result<PrivateFolder> PrivateFolder::open(const std::string& path, Missing missing) {
    constexpr int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
    FileDescriptor folder(::open(path.c_str(), flags));
    if (!folder.valid() && errno == ENOENT) {
        if (missing == Missing::empty) return PrivateFolder({}, path);
        make_folders(path);
        folder.reset(::open(path.c_str(), flags));
    }
    if (!folder.valid()) return Error(ErrorCode::system, fmt::format("{}: {}", path, text_of(errno)));
    struct stat status {};
    if (::fstat(folder.get(), &status) != 0) {
        return Error(ErrorCode::system, fmt::format("{}: {}", path, text_of(errno)));
    }
    if (const auto why = strangers_in(status); !why.empty()) {
        return Error(ErrorCode::permission, fmt::format("{}: {}", path, why));
    }
    return PrivateFolder(std::move(folder), path);
}

Result<std::optional<std::string>> PrivateFolder::read(const std::string& name, std::size_t most) const {
    const auto file = open_file(name);
    if (!file) return file.error();
    if (!file.value().valid()) return std::optional<std::string>{};
    std::string content;
    if (!read_all(file.value().get(), most + 1, content)) return trouble(name, errno);
    if (content.size() > most) {
        return Error(ErrorCode::invalid_argument, fmt::format("{}/{}: it is longer than {} bytes", path_, name, most));
    }
    return std::optional(std::move(content));
}

/// A file that this user alone writes; an invalid one if there is none.
Result<FileDescriptor> PrivateFolder::open_file(const std::string& name) const {
    if (!folder_.valid()) return FileDescriptor();
    // A pipe in its place must not make anybody wait, nor a link lead elsewhere.
    FileDescriptor file(
        ::openat(folder_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file.valid()) {
        if (errno == ENOENT) return FileDescriptor();
        if (errno == ELOOP) return Error(ErrorCode::permission, fmt::format("{}/{}: it is a link", path_, name));
        return trouble(name, errno);
    }
    struct stat status {};
    if (::fstat(file.get(), &status) != 0) return trouble(name, errno);
    const auto why = S_ISREG(status.st_mode) ? strangers_in(status) : std::string_view("it is not a file");
    if (!why.empty()) return Error(ErrorCode::permission, fmt::format("{}/{}: {}", path_, name, why));
    return file;
}

/// A new file with that content, to be given its name.
Result<FileDescriptor> PrivateFolder::write_part(const std::string& part, const std::string& content) const {
    if (!folder_.valid()) return trouble(part, ENOENT);
    FileDescriptor file(
        ::openat(folder_.get(), part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!file.valid()) return trouble(part, errno);
    if (write_all(file.get(), content)) return file;
    const int error = errno;
    ::unlinkat(folder_.get(), part.c_str(), 0);
    return trouble(part, error);
}

Result<Nanoseconds> PrivateFolder::replace(const std::string& name, const std::string& content) const {
    const auto part = part_name();
    const auto file = write_part(part, content);
    if (!file) return file.error();
    struct stat status {};
    const bool placed = ::fstat(file.value().get(), &status) == 0 &&
                        ::renameat(folder_.get(), part.c_str(), folder_.get(), name.c_str()) == 0;
    if (placed) return time_of(status);
    const int error = errno;
    ::unlinkat(folder_.get(), part.c_str(), 0);
    return trouble(name, error);
}

/// The kernel gives up a lock with the process that had it. Whoever puts another file under a name that is there, or takes it
/// away, holds the lock of the one that is there; of several that see none one gets the name.
Result<std::optional<FileDescriptor>> PrivateFolder::claim(const std::string& name, const std::string& content) const {
    const auto part = part_name();
    auto file = write_part(part, content);
    if (!file) return file.error();
    const auto give_back = [&](Result<std::optional<FileDescriptor>> result) {
        ::unlinkat(folder_.get(), part.c_str(), 0);
        return result;
    };
    if (::flock(file.value().get(), LOCK_EX | LOCK_NB) != 0) return give_back(trouble(part, errno));
    while (true) {
        if (::linkat(folder_.get(), part.c_str(), folder_.get(), name.c_str(), 0) == 0) {
            return give_back(std::optional(std::move(file.value())));
        }
        if (errno != EEXIST) return give_back(trouble(name, errno));
        const auto old = open_file(name);
        if (!old) return give_back(old.error());
        if (!old.value().valid()) continue;
        if (::flock(old.value().get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno == EWOULDBLOCK) return give_back(std::optional<FileDescriptor>{});
            return give_back(trouble(name, errno));
        }
        if (!is(name, old.value())) continue;  // another one took its place before we had its lock
        if (::renameat(folder_.get(), part.c_str(), folder_.get(), name.c_str()) != 0) {
            return give_back(trouble(name, errno));
        }
        return std::optional(std::move(file.value()));
    }
}

bool PrivateFolder::is(const std::string& name, const FileDescriptor& file) const noexcept {
    struct stat named {};
    struct stat open {};
    return ::fstatat(folder_.get(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ::fstat(file.get(), &open) == 0 && named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

void PrivateFolder::give_up(const std::string& name, const FileDescriptor& claimed) const noexcept {
    if (folder_.valid() && is(name, claimed)) remove(name);
}

void PrivateFolder::remove_leftover(const std::string& name, std::string_view beginning) const {
    const auto file = open_file(name);
    if (!file || !file.value().valid()) return;
    std::string content;
    if (!read_all(file.value().get(), beginning.size(), content) || !content.starts_with(beginning)) return;
    // Its process has ended, or is about to: nobody keeps us waiting.
    while (::flock(file.value().get(), LOCK_EX) != 0) {
        if (errno != EINTR) return;
    }
    if (is(name, file.value())) remove(name);
}

void PrivateFolder::renew(const std::string& name) const noexcept {
    if (folder_.valid()) ::utimensat(folder_.get(), name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
}

bool PrivateFolder::remove(const std::string& name) const noexcept {
    return folder_.valid() && ::unlinkat(folder_.get(), name.c_str(), 0) == 0;
}

std::vector<PrivateFolder::Entry> PrivateFolder::everything() const {
    std::vector<Entry> all;
    if (!folder_.valid()) return all;
    // Opened anew: a duplicate would share its place in the list with others of this object.
    FileDescriptor again(::openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!again.valid()) return all;
    const std::unique_ptr<DIR, int (*)(DIR*)> names(::fdopendir(again.get()), &::closedir);
    if (names == nullptr) return all;
    static_cast<void>(again.release());
    while (const auto* found = ::readdir(names.get())) {
        struct stat status {};
        if (::fstatat(folder_.get(), found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;  // gone meanwhile
        if (S_ISDIR(status.st_mode)) continue;
        all.push_back({found->d_name, time_of(status)});
    }
    return all;
}

std::vector<PrivateFolder::Entry> PrivateFolder::list() const {
    auto all = everything();
    std::erase_if(all, [](const Entry& e) { return e.name.starts_with('.'); });
    return all;
}

void PrivateFolder::sweep(Nanoseconds now) const {
    for (const auto& entry : everything()) {
        if (entry.name.starts_with(part_prefix) && now - entry.written > part_age) remove(entry.name);
    }
}

}  // namespace railmux::base

#include "rails/node_table.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "base/crypto.hpp"
#include "base/host.hpp"

namespace railmux::rails {

namespace {

constexpr auto table_bytes = static_cast<off_t>(sizeof(sched::LoadTable));
// Somebody removes the file, which takes microseconds, or as long as it takes until he is given a core again; if it takes for
// ever, we do without.
constexpr int attempts = 1000;
constexpr timespec between_attempts{.tv_sec = 0, .tv_nsec = 200'000};
// An owner: 22 bits are the kernel's own limit for process numbers, 10 tell contexts apart, 32 say when the process
// started.
constexpr int process_shift = 42;
constexpr int context_shift = 32;

Error cannot(std::string_view what, const std::string& path, int error) {
    return {ErrorCode::system, fmt::format("{} {}: {}", path, what, std::strerror(error)),
            "processes of one host see each other's load there; without, set RAILMUX_NODE_SHARE=off"};
}

/// The number of a namespace of this process, 0 where the kernel does not tell.
std::uint64_t namespace_number(const char* kind) {
    struct stat info {};
    return ::stat(fmt::format("/proc/self/ns/{}", kind).c_str(), &info) == 0 ? info.st_ino : 0;
}

Error refusal(const std::string& path, std::string_view why) {
    return {ErrorCode::system, fmt::format("{} {}", path, why), "remove it, or set RAILMUX_NODE_SHARE=off"};
}

/// Only what is ours alone, and a table, is written to.
std::optional<Error> judge(const std::string& path, const struct stat& info) {
    if (!S_ISREG(info.st_mode)) return refusal(path, "is not a file");
    if (info.st_uid != ::geteuid()) return refusal(path, fmt::format("belongs to user {}", info.st_uid));
    if ((info.st_mode & 077) != 0) return refusal(path, "is open to other users");
    if (info.st_size != 0 && info.st_size != table_bytes) {
        return refusal(path, fmt::format("is damaged: it has {} bytes, not {}", info.st_size, table_bytes));
    }
    return std::nullopt;
}

/// Whether the table bears its mark, which the first to come sets.
bool marked(sched::LoadTable& table) noexcept {
    std::uint64_t found = 0;
    return table.mark.compare_exchange_strong(found, sched::LoadTable::railmux_table) ||
           found == sched::LoadTable::railmux_table;
}

/// Takes the file away unless others have it.
void leave(const std::string& path, const base::FileDescriptor& file) noexcept {
    struct stat here {};
    struct stat there {};
    const bool last = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && ::fstat(file.get(), &here) == 0 &&
                      ::stat(path.c_str(), &there) == 0 && here.st_ino == there.st_ino && here.st_dev == there.st_dev;
    if (last) ::unlink(path.c_str());
}

/// The table at that path, opened by a user who may write to it.
base::FileDescriptor open_table(const std::string& path, int more) noexcept {
    return base::FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | more, 0600));
}

/// Takes away our other tables whose processes were all killed: as their namespaces may be gone, nobody else ever would.
void sweep(const std::string& folder, const std::string& prefix, const std::string& own) {
    std::error_code error;
    for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
        const auto path = at->path().string();
        if (!path.starts_with(prefix) || path == own) continue;
        const auto file = open_table(path, 0);
        struct stat info {};
        std::uint64_t mark = 0;
        if (!file.valid() || ::fstat(file.get(), &info) != 0 || judge(path, info)) continue;
        if (::pread(file.get(), &mark, sizeof mark, 0) != sizeof mark) continue;
        if (mark == sched::LoadTable::railmux_table) leave(path, file);
    }
}

/// When the process started, in the kernel's ticks; nothing if it is not there, or dead and waited for by nobody.
struct Started {
    bool there = false;
    bool known = false;
    std::uint32_t when = 0;
};
Started started(std::uint32_t process) noexcept {
    std::array<char, 1024> text{};
    std::snprintf(text.data(), text.size(), "/proc/%" PRIu32 "/stat", process);
    const base::FileDescriptor file(::open(text.data(), O_RDONLY | O_CLOEXEC));
    if (!file.valid()) return {.there = errno != ENOENT};
    const auto size = ::read(file.get(), text.data(), text.size());
    if (size <= 0) return {.there = errno != ESRCH};
    // The name, in brackets, may have anything in it. Behind it: the state, which is field 3, and so on.
    const std::string_view all(text.data(), static_cast<std::size_t>(size));
    auto at = all.rfind(')') + 2;
    if (at >= all.size()) return {.there = true};
    if (all[at] == 'Z' || all[at] == 'X') return {};
    constexpr int start_field = 22;
    for (int field = 3; field < start_field && at != 0; ++field) at = all.find(' ', at) + 1;
    std::uint64_t when = 0;
    const auto end = std::from_chars(all.data() + at, all.data() + all.size(), when);
    if (at == 0 || end.ec != std::errc{}) return {.there = true};
    return {.there = true, .known = true, .when = static_cast<std::uint32_t>(when)};
}

}  // namespace

void NodeTable::Unmap::operator()(sched::LoadTable* table) const noexcept { ::munmap(table, table_bytes); }

base::Result<NodeTable> NodeTable::open(const std::string& folder) {
    const auto network = namespace_number("net");
    const auto processes = namespace_number("pid");
    if (network == 0 || processes == 0 || !started(base::process_id()).known) {
        return Error(ErrorCode::system, "/proc does not tell who this process is", "mount /proc");
    }
    const auto prefix = fmt::format("{}/railmux-1-{}-", folder, ::geteuid());
    auto path = fmt::format("{}{}-{}", prefix, network, processes);
    sweep(folder, prefix, path);
    for (int attempt = 0; attempt < attempts; ++attempt) {
        auto file = open_table(path, O_CREAT);
        if (!file.valid()) return cannot("cannot be opened", path, errno);
        auto mapped = map(path, file);
        if (!mapped) return mapped.error();
        if (mapped.value() != nullptr) return NodeTable(std::move(path), std::move(file), std::move(mapped.value()));
        ::nanosleep(&between_attempts, nullptr);
    }
    return cannot("cannot be used", path, EWOULDBLOCK);
}

base::Result<NodeTable::Map> NodeTable::map(const std::string& path, const base::FileDescriptor& file) {
    struct stat info {};
    if (::fstat(file.get(), &info) != 0) return cannot("cannot be looked at", path, errno);
    if (auto refused = judge(path, info)) return *std::move(refused);
    if (::flock(file.get(), LOCK_SH | LOCK_NB) != 0) {
        if (errno == EWOULDBLOCK) return Map{};
        return cannot("cannot be locked", path, errno);
    }
    // Under the lock nobody removes it; before, somebody may have.
    if (::fstat(file.get(), &info) != 0 || info.st_nlink == 0) return Map{};
    // All of its memory at once: it might be missing later, when a mere store would end the process.
    if (::fallocate(file.get(), 0, 0, table_bytes) != 0) {
        const auto error = cannot("has no room", path, errno);
        leave(path, file);
        return error;
    }
    void* memory = ::mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return cannot("cannot be mapped", path, errno);
    Map mapped(static_cast<sched::LoadTable*>(memory));
    if (!marked(*mapped)) return refusal(path, "is damaged: it does not begin as a table does");
    return mapped;
}

NodeTable::~NodeTable() {
    if (file_.valid()) leave(path_, file_);
}

std::uint64_t NodeTable::new_owner() {
    const auto process = base::process_id();
    const auto start = started(process);
    if (!start.known) return 0;
    const auto context = base::random_u64() % (std::uint64_t{1} << (process_shift - context_shift));
    return std::uint64_t{process} << process_shift | context << context_shift | start.when;
}

bool NodeTable::alive(std::uint64_t owner) noexcept {
    const auto process = static_cast<std::uint32_t>(owner >> process_shift);
    if (process == 0) return false;
    const auto start = started(process);
    return start.there && (!start.known || start.when == static_cast<std::uint32_t>(owner));
}

}  // namespace railmux::rails

#include "trace/recorder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <railmux/error.hpp>

namespace railmux::trace {

Recorder::Recorder(std::string path, const Header& header, base::Logger& log)
    : path_(std::move(path)), log_(log), block_(std::make_unique_for_overwrite<std::byte[]>(block)) {
    const auto refuse = [&](std::string_view why, std::string cure) {
        throw Error(ErrorCode::invalid_config, fmt::format("trace: {} {}", path_, why), std::move(cure));
    };
    // Emptied only when nobody else writes it, this process's other contexts included.
    file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666));
    if (!file_.valid()) {
        refuse(fmt::format("cannot be written: {}", std::strerror(errno)),
               "name a file in a folder that may be written");
    }
    // The reader of a pipe would decide when the program goes on, and by leaving end it.
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0 || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) {
        refuse("is a pipe", "name a file");
    }
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        refuse("is being written by another context or process",
               "put %p (process id) or %r (rank) into its name, and give each context of a process one of its own "
               "(Config::set)");
    }
    // What cannot be emptied (/dev/null) is written all the same.
    static_cast<void>(::ftruncate(file_.get(), 0) == 0);
    const auto head = encode(header);
    std::memcpy(room(head.size()), head.data(), head.size());
    flush();
}

Recorder::~Recorder() {
    flush();
    // Some file systems find out only now that they are full.
    if (file_.valid() && ::close(file_.release()) != 0) give_up(errno);
}

void Recorder::add_peer(std::uint32_t peer, std::string_view name) noexcept {
    name = name.substr(0, longest_name);
    append(PeerRecord{.name_bytes = static_cast<std::uint16_t>(name.size()), .peer = peer});
    std::memcpy(room(name.size()), name.data(), name.size());
}

void Recorder::give_up(int error) noexcept {
    log_.warning("trace: {} ends here: {}", path_, std::strerror(error));
    file_.reset();
}

void Recorder::flush() noexcept {
    std::size_t written = 0;
    while (file_.valid() && written < used_) {
        const auto count = ::write(file_.get(), block_.get() + written, used_ - written);
        if (count > 0) {
            written += static_cast<std::size_t>(count);
        } else if (count == 0 || errno != EINTR) {
            give_up(count == 0 ? ENOSPC : errno);
        }
    }
    used_ = 0;
}

}  // namespace railmux::trace

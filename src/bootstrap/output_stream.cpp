#include "bootstrap/output_stream.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace railmux::bootstrap {

namespace {
constexpr std::size_t longest_line = 64 * 1024;
}

bool write_all(int to, std::string_view text) {
    while (!text.empty()) {
        const auto written = ::write(to, text.data(), text.size());
        if (written >= 0) {
            text.remove_prefix(static_cast<std::size_t>(written));
        } else if (errno == EAGAIN) {
            pollfd wait{to, POLLOUT, 0};
            ::poll(&wait, 1, -1);
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

void OutputStream::forward() {
    std::array<char, 64 * 1024> buffer;  // as much as a pipe holds
    const auto got = ::read(from_.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) return finish();
    pending_.append(buffer.data(), static_cast<std::size_t>(got));
    if (!write_all(to_, take_lines(false))) from_.reset();
}

void OutputStream::finish() {
    write_all(to_, take_lines(true));
    from_.reset();
}

std::string OutputStream::take_lines(bool all) {
    std::string text;
    std::size_t at = 0;
    while (at < pending_.size()) {
        const auto end = pending_.find('\n', at);
        const bool whole = end != std::string::npos;
        if (!whole && !all && pending_.size() - at < longest_line) break;
        const auto stop = whole ? end + 1 : pending_.size();
        text += prefix_;
        text.append(pending_, at, stop - at);
        if (!whole && !prefix_.empty()) text += '\n';  // the next prefix must start a line
        at = stop;
    }
    pending_.erase(0, at);
    return text;
}

}  // namespace railmux::bootstrap

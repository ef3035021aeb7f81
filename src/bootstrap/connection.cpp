#include "bootstrap/connection.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace railmux::bootstrap {

void Connection::flush() {
    auto& out = channel.output();
    std::size_t done = 0;
    while (done < out.size() && !lost) {
        const auto sent = ::send(socket.get(), out.data() + done, out.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0) {
            done += static_cast<std::size_t>(sent);
        } else if (errno == EAGAIN) {
            break;
        } else if (errno != EINTR) {
            done = out.size();  // that it is lost shows when all that it has sent is read
        }
    }
    out.erase(out.begin(), out.begin() + static_cast<long>(done));
}

void Connection::pump() {
    flush();
    std::array<std::byte, 16 * 1024> buffer;
    for (std::size_t read = 0; read < most_read && !lost && channel.state() != Channel::State::failed;) {
        const auto got = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            lost = got == 0 || errno != EAGAIN;
            break;
        }
        read += static_cast<std::size_t>(got);
        channel.receive(std::span(buffer).first(static_cast<std::size_t>(got)));
    }
    flush();
}

}  // namespace railmux::bootstrap

// Connects without end to ports that are not meant for it, and counts: what a job under load has to put up with.
//
//   strangers ADDRESS:PORT connect|garbage|hello|slow RATE SECONDS
//
// connect: connects and ends the connection; garbage: sends what is no railmux; hello: sends a greeting with a hello of
// somebody of another job; slow: keeps up to 4000 connections, and sends a byte to each now and then. RATE: connections a
// second. Prints how many were made, and for how long the longest was kept by the other side (slow).
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <thread>

#include "base/bytes.hpp"
#include "rails/process_address.hpp"
#include "transports/tcp/wire.hpp"

namespace {

namespace rails = railmux::rails;
namespace tcp = railmux::transports::tcp;

using Clock = std::chrono::steady_clock;

struct Held {
    int socket;
    Clock::time_point since;
};

constexpr std::size_t most_held = 4000;
constexpr auto patience = std::chrono::milliseconds(20);  // of those that do not wait to be ended

std::string greeting() {
    std::array<std::byte, 56> hello{};
    hello.fill(std::byte{0x5a});
    railmux::base::store(hello.data(), rails::wire_version);
    const auto head = tcp::encode({.kind = tcp::GreetingKind::hello, .length = hello.size()});
    const auto text = [](std::span<const std::byte> bytes) {
        return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    };
    return text(head) + text(hello);
}

bool over(int socket) {
    char byte = 0;
    const auto got = ::recv(socket, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN && errno != ENOTCONN);
}

class Strangers {
public:
    Strangers(const sockaddr_in& to, std::string kind) : to_(to), kind_(std::move(kind)) {
        if (kind_ == "garbage") text_ = "GET / HTTP/1.1\r\nHost: railmux\r\n\r\n";
        if (kind_ == "hello") text_ = greeting();
        if (kind_ == "slow") text_ = "R";
    }

    void knock() {
        const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (socket < 0) return;
        const linger reset{1, 0};  // no port stays behind in TIME_WAIT
        ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        const bool begun =
            ::connect(socket, reinterpret_cast<const sockaddr*>(&to_), sizeof to_) == 0 || errno == EINPROGRESS;
        if (!begun) {
            ::close(socket);
            return;
        }
        ++made_;
        if (!text_.empty()) say(socket);
        held_.push_back({socket, Clock::now()});
    }

    void tidy(Clock::time_point now) {
        const bool slow = kind_ == "slow";
        for (auto left = held_.size(); left > 0 && slow; --left) {  // all of them now and then
            auto held = held_.front();
            held_.pop_front();
            if (over(held.socket)) {
                longest_ = std::max(longest_, now - held.since);
                ::close(held.socket);
            } else {
                say(held.socket);
                held_.push_back(held);
            }
        }
        while (!held_.empty() && (held_.size() > most_held || (!slow && now - held_.front().since > patience))) {
            ::close(held_.front().socket);
            held_.pop_front();
        }
    }

    void print(double seconds) const {
        const auto longest =
            held_.empty() || kind_ != "slow" ? longest_ : std::max(longest_, Clock::now() - held_.front().since);
        std::printf("{\"connections\":%llu,\"per_second\":%.0f,\"longest_ms\":%lld}\n",
                    static_cast<unsigned long long>(made_), static_cast<double>(made_) / seconds,
                    static_cast<long long>(std::chrono::duration_cast<std::chrono::milliseconds>(longest).count()));
    }

private:
    void say(int socket) const {
        [[maybe_unused]] const auto sent = ::send(socket, text_.data(), text_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }

    sockaddr_in to_;
    std::string kind_;
    std::string text_;
    std::deque<Held> held_;
    std::uint64_t made_ = 0;
    Clock::duration longest_{0};
};

sockaddr_in address_of(const std::string& place) {
    const auto colon = place.rfind(':');
    sockaddr_in to{};
    to.sin_family = AF_INET;
    if (colon == std::string::npos || ::inet_pton(AF_INET, place.substr(0, colon).c_str(), &to.sin_addr) != 1)
        return to;
    to.sin_port = ::htons(static_cast<std::uint16_t>(std::atoi(place.c_str() + colon + 1)));
    return to;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) {
        std::fprintf(stderr, "strangers ADDRESS:PORT connect|garbage|hello|slow RATE SECONDS\n");
        return 2;
    }
    const rlimit files{65536, 65536};
    ::setrlimit(RLIMIT_NOFILE, &files);
    Strangers strangers(address_of(argv[1]), argv[2]);
    const double rate = std::atof(argv[3]);
    const double seconds = std::atof(argv[4]);
    const auto begun = Clock::now();
    auto tidied = begun;
    std::uint64_t knocks = 0;
    for (auto now = begun;; now = Clock::now()) {
        const auto elapsed = std::chrono::duration<double>(now - begun).count();
        if (elapsed > seconds) break;
        for (; static_cast<double>(knocks) < elapsed * rate; ++knocks) strangers.knock();
        if (now - tidied > std::chrono::milliseconds(argv[2] == std::string("slow") ? 200 : 5)) {
            tidied = now;
            strangers.tidy(now);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(500));
    }
    strangers.print(seconds);
    return 0;
}

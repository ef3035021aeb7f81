// What a plain busy-polling TCP program reaches: the measure for railmux. One send call a message, non-blocking sockets,
// TCP_NODELAY, no headers; the receiver confirms at the end.
//
//   raw_socket --listen PORT [CONNECTIONS]
//   raw_socket --connect HOST:PORT[,...] pingpong|bandwidth BYTES ITERATIONS[,...] [PAUSE_US [epoll]]
//
// Prints one JSON object a run. Several HOST:PORT pairs, separated by commas, flood all of them at the same time, each with
// its own number of messages if there are several. After each round trip of a ping-pong input is looked for in vain for
// PAUSE_US; with `epoll` both sides look by epoll_wait.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace {

struct Job {
    std::uint64_t pingpong = 0;
    std::uint64_t bytes = 0;
    std::uint64_t iterations = 0;
    std::uint64_t pause_us = 0;  // of a ping-pong
    std::uint64_t epoll = 0;
};

[[noreturn]] void die(const char* what) {
    std::fprintf(stderr, "raw_socket: %s: %s\n", what, std::strerror(errno));
    std::exit(1);
}

void set_up(int socket) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void send_all(int socket, const char* data, std::size_t bytes) {
    while (bytes > 0) {
        const auto sent = ::send(socket, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) die("send");
        if (sent <= 0) continue;
        data += sent;
        bytes -= static_cast<std::size_t>(sent);
    }
}

void receive_all(int socket, char* data, std::size_t bytes) {
    while (bytes > 0) {
        const auto got = ::recv(socket, data, bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN)) die("receive");
        if (got < 0) continue;
        data += got;
        bytes -= static_cast<std::size_t>(got);
    }
}

using Clock = std::chrono::steady_clock;

/// The receiving side of a ping-pong.
class Input {
public:
    Input(int socket, bool by_epoll) : socket_(socket), epoll_(by_epoll ? ::epoll_create1(0) : -1) {
        epoll_event interest{};
        interest.events = EPOLLIN;
        if (by_epoll && ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &interest) != 0) die("epoll");
    }
    ~Input() {
        if (epoll_ >= 0) ::close(epoll_);
    }
    Input(const Input&) = delete;
    Input& operator=(const Input&) = delete;

    void receive(char* data, std::size_t bytes) const {
        while (epoll_ >= 0 && !readable()) continue;
        receive_all(socket_, data, bytes);
    }
    void look_in_vain(std::chrono::microseconds pause) const {
        char unused = 0;
        for (const auto end = Clock::now() + pause; Clock::now() < end;) {
            if (epoll_ >= 0) {
                static_cast<void>(readable());
            } else {
                static_cast<void>(::recv(socket_, &unused, 1, MSG_DONTWAIT | MSG_PEEK));
            }
        }
    }

private:
    [[nodiscard]] bool readable() const {
        epoll_event event{};
        return ::epoll_wait(epoll_, &event, 1, 0) == 1;
    }

    int socket_;
    int epoll_;
};

void answer(int socket, const Job& job, std::vector<char>& buffer) {
    const Input input(socket, job.epoll != 0);
    for (std::uint64_t i = 0; i < job.iterations; ++i) {
        input.receive(buffer.data(), job.bytes);
        send_all(socket, buffer.data(), job.bytes);
    }
}

void swallow(const std::vector<int>& sockets, const std::vector<Job>& jobs, std::vector<char>& buffer) {
    std::vector<std::uint64_t> left(sockets.size());
    for (std::size_t i = 0; i < sockets.size(); ++i) left[i] = jobs[i].bytes * jobs[i].iterations;
    for (auto open = sockets.size(); open > 0;) {
        for (std::size_t i = 0; i < sockets.size(); ++i) {
            if (left[i] == 0) continue;
            const auto got =
                ::recv(sockets[i], buffer.data(), std::min<std::size_t>(left[i], buffer.size()), MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno != EAGAIN)) die("receive");
            if (got <= 0) continue;
            left[i] -= static_cast<std::uint64_t>(got);
            if (left[i] > 0) continue;
            send_all(sockets[i], "k", 1);
            --open;
        }
    }
}

void serve(const std::vector<int>& sockets) {
    std::vector<Job> jobs(sockets.size());
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        receive_all(sockets[i], reinterpret_cast<char*>(&jobs[i]), sizeof(Job));
    }
    std::vector<char> buffer(std::max<std::size_t>(jobs.front().bytes, 256 * 1024));
    if (jobs.front().pingpong != 0) {
        answer(sockets.front(), jobs.front(), buffer);
    } else {
        swallow(sockets, jobs, buffer);
    }
}

int connect_to(const std::string& where) {
    const auto colon = where.rfind(':');
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(where.substr(colon + 1))));
    ::inet_pton(AF_INET, where.substr(0, colon).c_str(), &address.sin_addr);
    for (int attempt = 0; attempt < 200; ++attempt) {
        const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
        if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
            set_up(socket);
            return socket;
        }
        ::close(socket);
        ::usleep(10'000);  // the other side may just be starting
    }
    die("connect");
}

double microseconds(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

void ping_pong(int socket, const Job& job) {
    std::vector<char> buffer(std::max<std::size_t>(job.bytes, 1));
    std::vector<double> times;
    times.reserve(job.iterations);
    const Input input(socket, job.epoll != 0);
    for (std::uint64_t i = 0; i < job.iterations; ++i) {
        const auto start = Clock::now();
        send_all(socket, buffer.data(), job.bytes);
        input.receive(buffer.data(), job.bytes);
        times.push_back(microseconds(Clock::now() - start) / 2);
        input.look_in_vain(std::chrono::microseconds(job.pause_us));
    }
    times.erase(times.begin(), times.begin() + static_cast<long>(times.size() / 10));  // warming up
    std::sort(times.begin(), times.end());
    std::printf("{\"bytes\":%llu,\"half_round_trip_us\":{\"min\":%.3f,\"median\":%.3f,\"p99\":%.3f}}\n",
                static_cast<unsigned long long>(job.bytes), times.front(), times[times.size() / 2],
                times[times.size() * 99 / 100]);
}

void flood(const std::vector<int>& sockets, const std::vector<Job>& jobs) {
    const auto bytes = jobs.front().bytes;
    std::vector<char> buffer(bytes);
    std::vector<std::uint64_t> left;
    left.reserve(jobs.size());
    for (const auto& job : jobs) left.push_back(bytes * job.iterations);
    const auto total = std::accumulate(left.begin(), left.end(), std::uint64_t{0});
    const auto start = Clock::now();
    bool any = true;
    while (any) {
        any = false;
        for (std::size_t i = 0; i < sockets.size(); ++i) {
            if (left[i] == 0) continue;
            any = true;
            const auto sent = ::send(sockets[i], buffer.data(), (left[i] - 1) % bytes + 1, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent < 0 && errno != EAGAIN) die("send");
            if (sent > 0) left[i] -= static_cast<std::uint64_t>(sent);
        }
    }
    char confirmed = 0;
    for (const int socket : sockets) receive_all(socket, &confirmed, 1);
    const auto seconds = microseconds(Clock::now() - start) / 1e6;
    std::printf("{\"bytes\":%llu,\"MB_per_s\":%.3f,\"messages_per_s\":%.1f}\n", static_cast<unsigned long long>(bytes),
                static_cast<double>(total) / seconds / 1e6,
                static_cast<double>(total) / static_cast<double>(bytes) / seconds);
}

void listen_and_serve(int port, int connections) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener, 8) != 0) {
        die("listen");
    }
    std::vector<int> sockets;
    for (int i = 0; i < connections; ++i) {
        sockets.push_back(::accept(listener, nullptr, nullptr));
        set_up(sockets.back());
    }
    serve(sockets);
}

std::vector<std::string> words_of(const std::string& list) {
    std::vector<std::string> words;
    for (std::size_t at = 0; at <= list.size();) {
        const auto end = std::min(list.find(',', at), list.size());
        words.push_back(list.substr(at, end - at));
        at = end + 1;
    }
    return words;
}

}  // namespace

int main(int count, char** arguments) {
    const std::string mode = count > 1 ? arguments[1] : "";
    if (mode == "--listen" && (count == 3 || count == 4)) {
        listen_and_serve(std::atoi(arguments[2]), count == 4 ? std::atoi(arguments[3]) : 1);
        return 0;
    }
    const bool by_epoll = count == 8 && std::string(arguments[7]) == "epoll";
    if (mode != "--connect" || count < 6 || count > 8 || (count == 8 && !by_epoll)) {
        std::fprintf(stderr,
                     "usage: raw_socket --listen PORT [CONNECTIONS]\n"
                     "       raw_socket --connect HOST:PORT[,...] pingpong|bandwidth BYTES ITERATIONS[,...] [PAUSE_US "
                     "[epoll]]\n");
        return 2;
    }
    const bool pingpong = std::string(arguments[3]) == "pingpong";
    const auto iterations = words_of(arguments[5]);
    std::vector<int> sockets;
    std::vector<Job> jobs;
    for (const auto& place : words_of(arguments[2])) {
        const auto& times = iterations[std::min(sockets.size(), iterations.size() - 1)];
        jobs.push_back({.pingpong = pingpong,
                        .bytes = std::strtoull(arguments[4], nullptr, 10),
                        .iterations = std::strtoull(times.c_str(), nullptr, 10),
                        .pause_us = count > 6 ? std::strtoull(arguments[6], nullptr, 10) : 0,
                        .epoll = by_epoll});
        sockets.push_back(connect_to(place));
    }
    for (std::size_t i = 0; i < sockets.size(); ++i) {
        send_all(sockets[i], reinterpret_cast<const char*>(&jobs[i]), sizeof(Job));
    }
    if (pingpong) {
        ping_pong(sockets.front(), jobs.front());
    } else {
        flood(sockets, jobs);
    }
    return 0;
}

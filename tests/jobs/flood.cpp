// One process floods another that has posted no receive; then all is received, in order, and nothing is missing.
//
//   railmux run -n 2 job_flood COUNT BYTES LIMIT
//
// Fails where the resident memory of either process was ever more than LIMIT MiB.
#include <railmux/context.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr railmux::Tag flood_tag = 1;
constexpr railmux::Tag end_tag = 2;

void send_flood(railmux::Context& context, std::uint64_t count, std::size_t bytes) {
    const auto other = context.peer(1);
    const auto window = std::clamp<std::size_t>((4u << 20) / bytes, 1, 1024);
    std::vector<std::vector<std::byte>> buffers(window, std::vector<std::byte>(bytes));
    std::vector<railmux::Request> requests(window);
    for (std::uint64_t i = 0; i < count; ++i) {
        auto& request = requests[i % window];
        auto& buffer = buffers[i % window];
        if (request.active() && !context.wait(request).ok()) throw std::runtime_error(context.failure(other));
        std::memcpy(buffer.data(), &i, sizeof i);
        request = context.isend(other, flood_tag, buffer);
    }
    if (context.wait_all(requests) != railmux::ErrorCode::ok) throw std::runtime_error(context.failure(other));
    context.recv(other, end_tag, {});
}

// Progresses without receiving until nothing new comes: what the sender may send ahead has come.
void let_it_pile_up(railmux::Context& context) {
    std::uint64_t before = 0;
    for (int quiet = 0; quiet < 3;) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
        while (std::chrono::steady_clock::now() < end) context.progress();
        std::uint64_t now = 0;
        for (const auto& rail : context.traffic()) now += rail.received_frames;
        quiet = now == before && now > 0 ? quiet + 1 : 0;
        before = now;
    }
}

void receive_flood(railmux::Context& context, std::uint64_t count, std::size_t bytes) {
    const auto other = context.peer(0);
    let_it_pile_up(context);
    std::vector<std::byte> buffer(bytes);
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto status = context.recv(other, flood_tag, buffer);
        std::uint64_t number = 0;
        std::memcpy(&number, buffer.data(), sizeof number);
        if (number != i || status.bytes != bytes || status.message != bytes) {
            throw std::runtime_error("message " + std::to_string(i) + " is missing: here comes number " +
                                     std::to_string(number) + " of " + std::to_string(status.message) + " bytes");
        }
    }
    if (context.probe(other, flood_tag)) throw std::runtime_error("more messages than were sent");
    context.send(other, end_tag, {});
}

std::uint64_t most_resident_mib() {
    std::ifstream file("/proc/self/status");
    for (std::string word; file >> word;) {
        std::uint64_t kib = 0;
        if (word == "VmHWM:" && file >> kib) return kib / 1024;
    }
    throw std::runtime_error("the kernel does not tell VmHWM");
}

}  // namespace

int main(int argc, char** argv) {
    try {
        if (argc != 4) return 2;
        const auto count = std::stoull(argv[1]);
        const auto bytes = std::max<std::size_t>(std::stoull(argv[2]), sizeof count);
        railmux::Context context;
        if (context.rank() == 0) {
            send_flood(context, count, bytes);
        } else {
            receive_flood(context, count, bytes);
        }
        const auto resident = most_resident_mib();
        std::cout << "rank " << context.rank() << ": " << resident << " MiB\n";
        return resident < std::stoull(argv[3]) ? 0 : 1;
    } catch (const std::exception& error) {
        std::cerr << error.what() << '\n';
        return 1;
    }
}

#include "transports/tcp/stamps.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <catch2/catch.hpp>

#include <array>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

#include "base/file_descriptor.hpp"

using namespace railmux;
namespace tcp = transports::tcp;

namespace {

/// Two ends of a connection over the loopback.
std::pair<base::FileDescriptor, base::FileDescriptor> connection() {
    const base::FileDescriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    REQUIRE(::bind(listener.get(), address, size) == 0);
    REQUIRE(::listen(listener.get(), 1) == 0);
    REQUIRE(::getsockname(listener.get(), address, &size) == 0);
    base::FileDescriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(one.get(), address, size) == 0);
    return {std::move(one), base::FileDescriptor(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC))};
}

/// What the kernel says of so many bytes that are sent now and read later.
base::Nanoseconds came_of(int from, int to, std::size_t bytes) {
    std::vector<std::byte> data(bytes);
    REQUIRE(::send(from, data.data(), bytes, 0) == static_cast<ssize_t>(bytes));
    pollfd readable{to, POLLIN, 0};
    REQUIRE(::poll(&readable, 1, 10'000) == 1);
    std::array<iovec, 1> into{iovec{data.data(), bytes}};
    base::Nanoseconds came = -1;
    tcp::WallClock clock;
    REQUIRE(tcp::read_stamped(to, into, clock, came) == static_cast<ssize_t>(bytes));
    return came;
}

}  // namespace

TEST_CASE("the kernel says when it had what is read, once it was told to", "[tcp]") {
    const auto [near, far] = connection();
    CHECK(came_of(near.get(), far.get(), 4000) == 0);
    REQUIRE(tcp::set_stamping(far.get(), tcp::Stamping::Turn::begin));
    CHECK(came_of(near.get(), far.get(), 100) == 0);  // nobody asks for that
    auto before = base::now_ns();
    const auto limit = before + 10 * base::second;
    auto came = came_of(near.get(), far.get(), 4000);
    while (came == 0 && before < limit) {  // the first socket of a host that wants it: the kernel begins a moment later
        before = base::now_ns();
        came = came_of(near.get(), far.get(), 4000);
    }
    CHECK(came + base::millisecond > before);  // of a clock that is set
    CHECK(came <= base::now_ns());
    tcp::WallClock wall;
    CHECK(wall.by_ours(std::numeric_limits<base::Nanoseconds>::max()) == 0);  // is yet to come
    std::array<std::byte, 8> rest{};
    std::array<iovec, 1> into{iovec{rest.data(), rest.size()}};
    base::Nanoseconds none = -1;
    tcp::WallClock clock;
    CHECK(tcp::read_stamped(far.get(), into, clock, none) == -1);
    CHECK(none == 0);
    REQUIRE(tcp::set_stamping(far.get(), tcp::Stamping::Turn::end));
    CHECK(came_of(near.get(), far.get(), 4000) == 0);
}

TEST_CASE("the kernel is told to stamp when something is worth it, and to end when nothing is", "[tcp]") {
    using tcp::Stamping;
    using Turn = Stamping::Turn;
    constexpr auto worth = tcp::worth_stamps;
    Stamping stamping;
    CHECK(stamping.came(worth) == Turn::none);  // nobody wants any
    CHECK_FALSE(stamping.takes());
    stamping.want();
    CHECK(stamping.came(worth - 1) == Turn::none);
    CHECK_FALSE(stamping.takes());
    for (int round = 0; round < 2; ++round) {
        CHECK(stamping.came(worth) == Turn::begin);
        CHECK(stamping.takes());
        CHECK(stamping.came(worth) == Turn::none);  // it has begun
        stamping.want();                            // and that changes nothing
        std::uint32_t small = 0;
        for (; stamping.takes(); ++small) CHECK(stamping.came(round == 0 ? 1 : worth - 1) == Turn::none);
        CHECK(small == Stamping::small_taken);
        CHECK(stamping.came(worth) == Turn::none);  // the kernel goes on all the while
        CHECK(stamping.takes());
        for (small = 1; stamping.came(1) == Turn::none; ++small) REQUIRE(small < Stamping::small_until_end);
        CHECK(small == Stamping::small_until_end);
        CHECK_FALSE(stamping.takes());
        CHECK(stamping.came(1) == Turn::none);
    }
    stamping.give_up();
    stamping.want();
    CHECK(stamping.came(worth) == Turn::none);
}

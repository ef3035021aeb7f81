// Two processes whose memory changes under its addresses between large messages: unmapped and mapped anew, registered and
// taken back, shared with a child for a while. A registration with a device that outlives the pages it was made for would
// send, or receive into, the old ones; each message must have the bytes that are there when it is sent.
//
//   railmux run -n 2 job_remapped
#include <railmux/context.hpp>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <iostream>
#include <optional>
#include <span>
#include <string>

namespace {

constexpr railmux::Tag tag = 1;
constexpr std::size_t bytes = 9 << 20;  // more than what is registered together

[[noreturn]] void fail(const std::string& what) { throw railmux::Error(railmux::ErrorCode::system, what); }

/// Pages at an address that stays the same, whatever lies behind it.
class Place {
public:
    Place() : at_(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
        if (at_ == MAP_FAILED) fail("no addresses");
    }
    ~Place() { ::munmap(at_, bytes); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// Takes the pages away and puts others there.
    void renew() {
        ::munmap(at_, bytes);
        constexpr int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        if (::mmap(at_, bytes, PROT_READ | PROT_WRITE, how, -1, 0) != at_) fail("the address is taken");
    }
    [[nodiscard]] std::span<std::uint64_t> words() const {
        return {static_cast<std::uint64_t*>(at_), bytes / sizeof(std::uint64_t)};
    }
    [[nodiscard]] std::span<std::byte> memory() const { return std::as_writable_bytes(words()); }

private:
    void* at_;
};

std::uint64_t word(std::uint64_t round, std::uint64_t place) { return (round << 40 | place) * 0x9E3779B97F4A7C15ULL; }

void fill(std::span<std::uint64_t> words, std::uint64_t round) {
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = word(round, i);
}

void check(std::span<const std::uint64_t> words, std::uint64_t round) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] != word(round, i))
            fail("round " + std::to_string(round) + ", word " + std::to_string(i) + " is wrong");
    }
}

/// A child that has all our pages, and ends when this does.
class Child {
public:
    Child() {
        if (::pipe(pipe_.data()) != 0) fail("no pipe");
        child_ = ::fork();
        if (child_ < 0) fail("no child");
        if (child_ > 0) return;
        ::close(pipe_[1]);
        char byte = 0;
        static_cast<void>(::read(pipe_[0], &byte, 1) == 0);
        ::_exit(0);
    }
    ~Child() {
        ::close(pipe_[0]);
        ::close(pipe_[1]);
        ::waitpid(child_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

private:
    std::array<int, 2> pipe_{};
    pid_t child_ = -1;
};

/// What both sides do with their memory before each message.
void change(railmux::Context& context, Place& place, std::optional<railmux::MemoryRegion>& region,
            std::optional<Child>& child, std::uint64_t round) {
    switch (round % 8) {
        case 1: place.renew(); break;  // other pages than the last message's
        case 2: region.emplace(context.register_memory(place.memory(), railmux::Rights::read_write)); break;
        case 3: break;                   // once more, from and to what stays registered
        case 4: child.emplace(); break;  // whoever writes to a page next must not get another one
        case 5: child.reset(); break;
        case 6:
            region.reset();
            place.renew();
            break;
        case 7: region.emplace(context.register_memory(place.memory(), railmux::Rights::read_write)); break;
        default:
            region.reset();
            place.renew();
            child.emplace();
            break;
    }
}

void run(railmux::Context& context) {
    const bool sends = context.rank() == 0;
    const auto other = context.peer(sends ? 1 : 0);
    Place place;
    std::optional<railmux::MemoryRegion> region;
    std::optional<Child> child;
    for (std::uint64_t round = 0; round < 24; ++round) {
        change(context, place, region, child, round);
        if (sends) {
            fill(place.words(), round);
            context.send(other, tag, place.memory());
        } else {
            context.recv(other, tag, place.memory());
            check(place.words(), round);
        }
        if (round % 8 == 0) child.reset();
    }
    // Nobody leaves before the other has all.
    if (sends) {
        context.recv(other, tag, place.memory());
    } else {
        context.send(other, tag, place.memory().first(1));
    }
}

}  // namespace

int main() {
    try {
        railmux::Context context;
        run(context);
        return 0;
    } catch (const railmux::Error& error) {
        std::cerr << error.what() << '\n' << error.cure() << '\n';
        return 1;
    }
}

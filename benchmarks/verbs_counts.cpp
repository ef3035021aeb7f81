// What a message over the verbs rail asks of the device: its calls to the verbs library are counted on the way there. For two
// ports of one host that reach each other; `verbs` runs it in the machine of scripts/vm.
//
//   verbs_counts small PORT PORT [ROUND-TRIPS]           8-byte messages: work requests, allocations; under callgrind the
//                                                        instructions from the call to the device, and from its completion
//                                                        to the bytes' place and to the end of the receive, while time goes
//                                                        by as if a message took 2 us
//   verbs_counts schemes PORT PORT BYTES [ROUNDS]        large messages, written or read, in variants: what is posted, times
#include <fmt/format.h>
#include <rdma/rdma_cma.h>
#include <sys/mman.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <railmux/context.hpp>

#include "rails/frame.hpp"
#include "slowed_time.hpp"
#include "verbs_device.hpp"

using namespace railmux;

namespace {

std::uint64_t allocated = 0;

/// Two contexts of this process, one for each port, which one thread progresses in turns.
struct Pair {
    Pair(const std::string& a_port, const std::string& b_port, const std::string& scheme, bool inlined = false)
        : a_context(std::in_place, config(a_port, scheme, inlined)),
          b_context(std::in_place, config(b_port, scheme, inlined)),
          a(*a_context),
          b(*b_context),
          to_b(a.add_peer(b.address())),
          to_a(b.add_peer(a.address())) {}
    ~Pair() {  // each waits for the other's goodbye
        std::thread other([this] { a_context.reset(); });
        b_context.reset();
        other.join();
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    static Config config(const std::string& port, const std::string& scheme, bool inlined) {
        Config config;
        config.set("rails", "verbs:" + port).set("progress", "poll").set("probe", "off").set("node.share", "off");
        config.set("bulk.scheme", scheme)
            .set("verbs.bulk", "register")
            .set("eager.max", "16K")  // of which as many are inlined
            .set("bulk.inlined", inlined ? "always" : "auto");
        return config;
    }

    std::optional<Context> a_context, b_context;
    Context& a;
    Context& b;
    Peer to_b, to_a;
};

// --- Small messages --------------------------------------------------------------------------------------------------

constexpr std::size_t small_bytes = 8;

/// What is counted of a message: nothing, or the instructions from the call to the first request that goes to the device, or
/// those from the completion that brings it to its bytes being written to their place, which are the matched receive's, or to
/// the receive being over.
enum class Metered { nothing, send, isend, match, receive };

/// A place for a message's bytes: when they come, what was counted by then is dumped as "match". Callgrind does not let the
/// handler of a signal stop the count.
class Watched {
public:
    Watched() {
        struct sigaction action {};
        action.sa_handler = [](int) {
            CALLGRIND_DUMP_STATS_AT("match");
            open();
        };
        if (::mprotect(page.data(), page.size(), PROT_READ) != 0 || ::sigaction(SIGSEGV, &action, &before_) != 0) {
            std::abort();
        }
    }
    ~Watched() {
        open();
        ::sigaction(SIGSEGV, &before_, nullptr);
        CALLGRIND_DUMP_STATS_AT("rest");
    }
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    [[nodiscard]] static std::span<std::byte> place() { return std::span(page).first(small_bytes); }

private:
    static void open() { ::mprotect(page.data(), page.size(), PROT_READ | PROT_WRITE); }

    alignas(4096) static inline std::array<std::byte, 4096> page{};
    struct sigaction before_ {};
};

void one_way(Context& from, Peer to, Context& at, Peer source, Metered metered) {
    std::array<std::byte, small_bytes> out{}, in{};
    std::optional<Watched> watched;
    if (metered == Metered::match) watched.emplace();
    auto receive = at.irecv(source, 1, watched ? Watched::place() : in);
    Request sending;
    if (metered == Metered::send) {
        device::meter_until_post(true);
        from.send(to, 1, out);
    } else {
        device::meter_until_post(metered == Metered::isend);
        sending = from.isend(to, 1, out);
    }
    while (device::metering()) from.progress();
    std::optional<Status> status;
    while (!status) {
        from.progress();
        device::meter_from_completion(metered == Metered::receive || metered == Metered::match);
        status = at.test(receive);
        device::stop_metering();
    }
    if (!status->ok()) throw std::runtime_error("a message was lost");
    if (sending.active()) static_cast<void>(from.wait(sending));
}

void round_trips(Pair& pair, std::size_t count, Metered metered) {
    for (std::size_t i = 0; i < count; ++i) {
        one_way(pair.a, pair.to_b, pair.b, pair.to_a, metered);
        one_way(pair.b, pair.to_a, pair.a, pair.to_b, Metered::nothing);
    }
}

/// As if a message took what it does over such networks: some of what is done with a message is done once in so many us.
void slow_down(Pair& pair) {
    constexpr double message_ns = 2000;
    constexpr std::size_t count = 200;
    const auto begin = std::chrono::steady_clock::now();
    round_trips(pair, count, Metered::nothing);
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    slow_time(took.count() / (2 * count) / message_ns);
}

void small(Pair& pair, std::size_t count) {
    round_trips(pair, 200, Metered::nothing);  // both ends have seen all there is to grow
    const auto before = device::counts();
    const auto allocated_before = allocated;
    round_trips(pair, count, Metered::nothing);
    const auto after = device::counts();
    const auto allocations = allocated - allocated_before;
    const auto each = [&](std::uint64_t number) {
        return static_cast<double>(number) / static_cast<double>(2 * count);
    };
    fmt::print(
        "messages {}: work requests {:.3f} each (frames {:.3f}, acknowledgements {:.3f}, credits {:.3f}), calls "
        "{:.3f}, "
        "receives posted {:.3f}, allocations {}\n",
        2 * count, each(after.requests() - before.requests()), each(after.frames() - before.frames()),
        each(after.of(rails::FrameType::ack) - before.of(rails::FrameType::ack)), each(after.credits - before.credits),
        each(after.calls - before.calls), each(after.receives - before.receives), allocations);
    if (RUNNING_ON_VALGRIND == 0) return;
    slow_down(pair);
    for (const auto metered : {Metered::send, Metered::isend, Metered::receive}) {
        round_trips(pair, count, metered);
        CALLGRIND_DUMP_STATS_AT(metered == Metered::send ? "send" : metered == Metered::isend ? "isend" : "receive");
    }
    round_trips(pair, count, Metered::match);
}

// --- Large messages --------------------------------------------------------------------------------------------------

struct Variant {
    std::string scheme;
    bool chained = true;
    bool two_queues = false;
    bool inlined = false;  // the first 16 KiB follow the announcement
    std::unique_ptr<Pair> pair{};
    std::vector<device::Counts> counted{};  // of each message
    std::vector<double> times{};            // ns, until both sides' requests are over
};

void large(Variant& variant, std::span<std::byte> from, std::span<std::byte> to) {
    auto& a = variant.pair->a;
    auto& b = variant.pair->b;
    device::chain(variant.chained);
    const auto before = device::counts();
    const auto begin = std::chrono::steady_clock::now();
    auto receive = b.irecv(variant.pair->to_a, 2, to);
    auto send = a.isend(variant.pair->to_b, 2, from);
    while (send.active() || receive.active()) {
        if (send.active()) static_cast<void>(a.test(send));
        if (receive.active()) static_cast<void>(b.test(receive));
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    variant.times.push_back(took.count());
    variant.counted.push_back(device::counts() - before);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

void schemes(const std::string& a_port, const std::string& b_port, std::size_t bytes, std::size_t rounds) {
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
    std::vector<Variant> variants;
    for (const char* scheme : {"write", "read"}) {
        for (const bool two_queues : {false, true}) {
            for (const bool chained : {true, false}) variants.push_back({scheme, chained, two_queues});
        }
        variants.push_back({.scheme = scheme, .inlined = true});
    }
    std::vector<MemoryRegion> registered;
    for (auto& variant : variants) {
        device::make_two_queues(variant.two_queues);
        variant.pair = std::make_unique<Pair>(a_port, b_port, variant.scheme, variant.inlined);
        registered.push_back(variant.pair->a.register_memory(from));
        registered.push_back(variant.pair->b.register_memory(to));
        for (int i = 0; i < 3; ++i) large(variant, from, to);
        variant.times.clear();
        variant.counted.clear();
    }
    for (std::size_t round = 0; round < rounds; ++round) {
        for (auto& variant : variants) large(variant, from, to);
    }
    const auto unit = median(variants.front().times);
    for (const auto& one : variants) {
        const auto typical = [&](auto count) {
            std::vector<double> each;
            for (const auto& message : one.counted) each.push_back(static_cast<double>(count(message)));
            return median(each);
        };
        fmt::print(
            "{} {} {} bytes {} inlined {} control {} writes {} reads {} calls {} time {:.2f}\n", one.scheme,
            one.chained ? "chained" : "single", one.two_queues ? "two" : "one", bytes,
            typical([](const auto& message) { return message.of(rails::FrameType::inlined); }),
            typical([](const auto& message) { return message.frames() - message.of(rails::FrameType::inlined); }),
            typical([](const auto& message) { return message.writes; }),
            typical([](const auto& message) { return message.reads; }),
            typical([](const auto& message) { return message.calls; }), median(one.times) / unit);
    }
    if (to != from) throw std::runtime_error("the bytes are wrong");
    registered.clear();
}

}  // namespace

void* operator new(std::size_t bytes) {
    ++allocated;
    void* memory = std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const auto number = [&](std::size_t place, std::size_t otherwise) {
        return words.size() > place ? std::strtoull(words[place].c_str(), nullptr, 10) : otherwise;
    };
    if (words.size() >= 3 && words[0] == "small") {
        Pair pair(words[1], words[2], "auto");
        small(pair, number(3, 1000));
        return 0;
    }
    if (words.size() >= 4 && words[0] == "schemes") {
        schemes(words[1], words[2], number(3, 0), number(4, 20));
        return 0;
    }
    fmt::print(stderr, "usage: verbs_counts small|schemes PORT PORT ...; see the head of verbs_counts.cpp\n");
    return 2;
}

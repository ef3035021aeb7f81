// Random one-sided operations of three contexts on each other and on themselves, against what they must have done.
//
// Each of them has, at each target, a part of the memory that it alone writes, and words that it alone swaps: a copy here
// says what is there. All write to one common part, always the same byte at the same place, and add to common words: their
// sum is known at the end. Puts and gets of one batch do not overlap, as nothing orders them; atomics do.
//
// RAILMUX_TEST_RAILS names other rails than those of tcp and the one to itself: tests/vm/onesided_test.sh has those of verbs.
// The test says how many bytes each rail carried.
#include <array>
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <map>
#include <random>
#include <thread>

#include "engine/pair.hpp"

using namespace railmux;
using test::pattern;

namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t usual_operations = 6000;
#else
constexpr std::uint64_t usual_operations = 100'002;
#endif

/// How many: fewer where that takes long (RAILMUX_TEST_OPERATIONS).
std::uint64_t operations() {
    const char* const wanted = std::getenv("RAILMUX_TEST_OPERATIONS");
    return wanted == nullptr ? usual_operations : std::strtoull(wanted, nullptr, 10);
}

constexpr std::size_t contexts = 3;
constexpr std::size_t slot_bytes = 2048;  // of small accesses
constexpr std::size_t slots = 64;
constexpr std::size_t large_bytes = 400'000;
constexpr std::size_t own_bytes = slots * slot_bytes + large_bytes;
constexpr std::size_t common_bytes = 100'000;
constexpr std::size_t words = 8;  // of each width: own ones and common ones

struct Memory {
    std::array<std::vector<std::byte>, contexts> own;  // by origin
    std::vector<std::byte> common = std::vector<std::byte>(common_bytes);
    struct Words {
        std::array<std::array<std::uint64_t, words>, contexts> own64{};
        std::array<std::array<std::uint32_t, words>, contexts> own32{};
        std::array<std::uint64_t, words> common64{};
        std::array<std::uint32_t, words> common32{};
    } words;

    Memory() {
        for (auto& part : own) part.resize(own_bytes);
    }
};

struct Process {
    std::optional<Context> context;
    Memory memory;
    std::array<std::optional<MemoryRegion>, contexts> own;
    std::optional<MemoryRegion> common;
    std::optional<MemoryRegion> atomics;
    std::array<Peer, contexts> peers;
    // For the other threads, who must not call this context.
    std::array<RemoteKey, contexts> own_keys;
    RemoteKey common_key;
    RemoteKey atomics_key;
};

struct Job {
    std::array<Process, contexts> processes;
    std::vector<std::byte> common = pattern(common_bytes, 99);
    std::atomic<std::size_t> finished = 0;
    std::atomic<bool> wrong = false;

    Job() {
        Config config;
        config.set("tcp.interfaces", "127.0.1.1,127.0.1.2").set("progress", "hybrid").set("policy", "round_robin");
        config.set("rails", test::rails_for_tests("self,tcp:*"));
        for (auto& process : processes) process.context.emplace(config);
        for (auto& process : processes) {
            auto& memory = process.memory;
            for (std::size_t i = 0; i < contexts; ++i) {
                process.own[i].emplace(process.context->register_memory(memory.own[i]));
                process.peers[i] = process.context->add_peer(processes[i].context->address());
            }
            process.common.emplace(process.context->register_memory(memory.common));
            process.atomics.emplace(
                process.context->register_memory(std::as_writable_bytes(std::span(&memory.words, 1))));
            for (std::size_t i = 0; i < contexts; ++i) process.own_keys[i] = process.own[i]->key();
            process.common_key = process.common->key();
            process.atomics_key = process.atomics->key();
        }
    }
};

/// One of the three, with its copies of what it alone changes.
class ModelOrigin {
public:
    ModelOrigin(Job& job, std::size_t me) : job_(job), me_(me), self_(job.processes[me]), random_(me + 1) {
        for (auto& copy : own_) copy.resize(own_bytes);
    }

    void run() {
        for (std::uint64_t done = 0; done < operations() / contexts;) done += batch();
        ++job_.finished;
        while (job_.finished < contexts) self_.context->progress();
    }

    std::array<std::array<std::uint64_t, words>, contexts> added64{};  // by target
    std::array<std::array<std::uint32_t, words>, contexts> added32{};
    std::array<std::vector<std::byte>, contexts> own_;
    std::array<std::array<std::uint64_t, words>, contexts> swapped64{};
    std::array<std::array<std::uint32_t, words>, contexts> swapped32{};

private:
    struct Got {
        std::vector<std::byte> bytes;
        std::span<const std::byte> expected;
    };
    template <typename T>
    struct Swap {
        T before{};
        T expected{};
    };

    void expect(bool holds) {
        if (!holds) job_.wrong = true;
    }
    std::size_t below(std::size_t limit) { return random_() % limit; }

    /// Operations that may overtake each other, then a flush.
    std::uint64_t batch() {
        target_ = below(contexts);
        taken_.fill(false);
        large_taken_ = false;
        got_.clear();
        swaps64_.clear();
        swaps32_.clear();
        requests_.clear();
        const auto count = 1 + below(40);
        got_.reserve(count);
        swaps64_.reserve(count);
        swaps32_.reserve(count);
        for (std::size_t i = 0; i < count; ++i) one();
        auto& context = *self_.context;
        auto flush = below(2) == 0 ? context.iflush(self_.peers[target_]) : context.iflush();
        expect(context.wait(flush).ok());
        expect(context.wait_all(std::span(requests_)) == ErrorCode::ok);
        for (const auto& got : got_) expect(test::same(got.bytes, got.expected));
        for (const auto& swap : swaps64_) expect(swap.before == swap.expected);
        for (const auto& swap : swaps32_) expect(swap.before == swap.expected);
        return requests_.size();
    }

    void one() {
        switch (below(8)) {
            case 0:
            case 1:
            case 2: access(); break;
            case 3: common(); break;
            case 4: add(added64[target_], offsetof(Memory::Words, common64)); break;
            case 5: add(added32[target_], offsetof(Memory::Words, common32)); break;
            case 6: swap(swapped64[target_], swaps64_, offsetof(Memory::Words, own64)); break;
            default: swap(swapped32[target_], swaps32_, offsetof(Memory::Words, own32)); break;
        }
    }

    /// A put or get of a place that nothing else of this batch touches.
    void access() {
        std::size_t begin = 0;
        std::size_t room = slot_bytes;
        if (below(20) == 0 && !large_taken_) {
            large_taken_ = true;
            begin = slots * slot_bytes;
            room = large_bytes;
        } else {
            const auto slot = below(slots);
            if (std::exchange(taken_[slot], true)) return;
            begin = slot * slot_bytes;
        }
        const auto bytes = below(room + 1);
        const auto offset = begin + below(room - bytes + 1);
        auto place = std::span(own_[target_]).subspan(offset, bytes);
        const RemotePlace remote{job_.processes[target_].own_keys[me_], offset};
        auto& context = *self_.context;
        if (below(2) == 0) {
            std::ranges::generate(place, [&] { return static_cast<std::byte>(random_()); });
            const auto end = below(2) == 0 ? PutEnd::local : PutEnd::remote;
            requests_.push_back(context.iput(self_.peers[target_], remote, place, {.end = end}));
        } else {
            got_.push_back({std::vector<std::byte>(bytes), place});
            requests_.push_back(context.iget(self_.peers[target_], remote, got_.back().bytes));
        }
    }

    void common() {
        const auto bytes = below(below(10) == 0 ? common_bytes : slot_bytes);
        const auto offset = below(common_bytes - bytes + 1);
        const auto data = std::span(job_.common).subspan(offset, bytes);
        requests_.push_back(
            self_.context->iput(self_.peers[target_], {job_.processes[target_].common_key, offset}, data));
    }

    template <typename T>
    void add(std::array<T, words>& sums, std::size_t offset) {
        const auto word = below(words);
        const auto value = static_cast<T>(random_());
        sums[word] += value;
        static thread_local T before;
        requests_.push_back(
            self_.context->ifetch_add(self_.peers[target_], place(offset, word, sizeof(T)), value, before));
    }

    template <typename T>
    void swap(std::array<T, words>& copies, std::vector<Swap<T>>& swaps, std::size_t offset) {
        const auto word = below(words);
        const auto value = static_cast<T>(below(4));
        auto& copy = copies[word];
        const auto where = place(offset + me_ * sizeof copies, word, sizeof(T));
        swaps.push_back({{}, copy});
        auto& before = swaps.back().before;
        if (below(2) == 0) {
            copy = value;
            requests_.push_back(self_.context->iswap(self_.peers[target_], where, value, before));
        } else {
            const auto expected = static_cast<T>(below(4));
            requests_.push_back(self_.context->icompare_swap(self_.peers[target_], where, expected, value, before));
            if (copy == expected) copy = value;
        }
    }

    [[nodiscard]] RemotePlace place(std::size_t offset, std::size_t word, std::size_t width) const {
        return {job_.processes[target_].atomics_key, offset + word * width};
    }

    Job& job_;
    std::size_t me_;
    Process& self_;
    std::mt19937_64 random_;
    std::size_t target_ = 0;
    std::array<bool, slots> taken_{};
    bool large_taken_ = false;
    std::vector<Got> got_;
    std::vector<Swap<std::uint64_t>> swaps64_;
    std::vector<Swap<std::uint32_t>> swaps32_;
    std::vector<Request> requests_;
};

}  // namespace

TEST_CASE("one-sided: three contexts do what they like, and the result is exact", "[engine]") {
    Job job;
    std::vector<std::unique_ptr<ModelOrigin>> origins;
    for (std::size_t i = 0; i < contexts; ++i) origins.push_back(std::make_unique<ModelOrigin>(job, i));
    std::vector<std::thread> threads;
    for (auto& origin : origins) threads.emplace_back([&] { origin->run(); });
    for (auto& thread : threads) thread.join();
    CHECK(!job.wrong);
    for (std::size_t target = 0; target < contexts; ++target) {
        const auto& memory = job.processes[target].memory;
        Memory::Words expected;
        for (std::size_t i = 0; i < contexts; ++i) {
            CHECK((memory.own[i] == origins[i]->own_[target]));
            expected.own64[i] = origins[i]->swapped64[target];
            expected.own32[i] = origins[i]->swapped32[target];
            for (std::size_t word = 0; word < words; ++word) {
                expected.common64[word] += origins[i]->added64[target][word];
                expected.common32[word] += origins[i]->added32[target][word];
            }
        }
        CHECK(memory.words.own64 == expected.own64);
        CHECK(memory.words.own32 == expected.own32);
        CHECK(memory.words.common64 == expected.common64);
        CHECK(memory.words.common32 == expected.common32);
        std::size_t strange = 0;
        for (std::size_t i = 0; i < common_bytes; ++i) {
            if (memory.common[i] != std::byte{} && memory.common[i] != job.common[i]) ++strange;
        }
        CHECK(strange == 0);
    }
    std::map<std::string, std::uint64_t> carried;
    for (const auto& process : job.processes) {
        for (const auto& traffic : process.context->traffic()) carried[traffic.rail] += traffic.received_bytes;
    }
    CHECK(carried.size() > 1);
    for (const auto& [rail, bytes] : carried) {
        std::cout << "one-sided over " << rail << ": " << bytes << " bytes\n";
        CHECK(bytes > 0);
    }
    std::vector<std::thread> ends;  // each waits for the others' goodbyes
    for (auto& process : job.processes) {
        ends.emplace_back([&process] {
            process.own = {};
            process.common.reset();
            process.atomics.reset();
            process.context.reset();
        });
    }
    for (auto& end : ends) end.join();
}

// Contexts of one node, over shared memory.
#include <algorithm>

#include "pair.hpp"

using namespace railmux;
using test::Pair;

namespace {

Config in_memory(const char* bulk) {
    Config config;
    config.set("rails", "shm:*").set("shm.bulk", bulk).set("close.timeout", "500ms");
    return config;
}

bool carried_all(const Context& context, std::uint64_t bytes) {
    const auto traffic = context.traffic();
    return std::ranges::all_of(traffic, [&](const auto& t) { return t.rail == "shm:node" && t.sent_bytes == bytes; });
}

}  // namespace

TEST_CASE("messages of every size through shared memory", "[engine][shm]") {
    const auto* bulk = GENERATE("fetch", "copy");
    Pair pair(in_memory(bulk).set("progress", "poll"));
    std::uint64_t sent = 0;
    for (const std::size_t bytes : {0U, 1U, 24U, 25U, 4096U, 5000U, 16'384U, 16'385U, 49'152U, 3'000'000U}) {
        const auto out = test::pattern(bytes);
        std::vector<std::byte> in(bytes);
        auto received = pair.b.irecv(pair.to_a, 1, in);
        auto request = pair.a.isend(pair.to_b, 1, out);
        pair.finish(pair.b, received);
        pair.finish(pair.a, request);
        CHECK(in == out);
        sent += bytes;
    }
    CHECK(carried_all(pair.a, sent));
}

TEST_CASE("threads: two of one node sleep and wake each other", "[engine][shm]") {
    auto config = in_memory("auto");
    config.set("progress", "block");
    Pair pair(config);
    constexpr int rounds = 2000;
    std::thread other([&] {
        for (int i = 0; i < rounds; ++i) {
            std::vector<std::byte> in(40'000);
            auto request = pair.b.irecv(pair.to_a, 1, in);
            const auto status = pair.b.wait(request);
            pair.b.send(pair.to_a, 2, std::span(in).first(status.bytes));
        }
    });
    int wrong = 0;
    for (int i = 0; i < rounds; ++i) {
        const auto out =
            test::pattern(i % 10 == 0 ? 40'000 : static_cast<std::size_t>(i % 100), static_cast<unsigned>(i));
        std::vector<std::byte> in(out.size());
        auto request = pair.a.irecv(pair.to_b, 2, in);
        pair.a.send(pair.to_b, 1, out);
        pair.a.wait(request);
        wrong += in == out ? 0 : 1;
    }
    other.join();
    CHECK(wrong == 0);
}

// Where the model has asking first faster than sending along.
#include <catch2/catch.hpp>

#include <limits>
#include <random>

#include "model/eager.hpp"
#include "unit/model_systems.hpp"

using namespace railmux;
using model::eager_max;
using model::EagerBounds;

namespace {

constexpr PerByte ten_gigabytes{0.1};

/// One protocol for all sizes; times in ns.
LogGP link(double latency, double overhead, double per_byte) {
    LogGP model;
    model.ranges[0].L = {Nanos(latency), {0}};
    model.ranges[0].o_s = model.ranges[0].o_r = {Nanos(overhead), {0}};
    model.ranges[0].G.ns = per_byte;
    return model;
}

Nanos eager(const LogGP& model, PerByte copying, std::uint64_t bytes) {
    return model.predict(bytes).delivery + (bytes > EagerBounds{}.frame ? 1 : 2) * copying.of(bytes);
}

/// By hand: two small messages and a closing frame, then the bytes as those of large messages.
Nanos rendezvous(const LogGP& model, std::uint64_t bytes) {
    const auto& r = model.ranges.back();
    return 2 * model.predict(1).delivery + model.ranges[0].o_s.fixed + model.ranges[0].o_r.fixed + r.L.fixed +
           r.o_s.fixed + r.o_r.fixed + r.G.of(bytes - 1);
}

}  // namespace

TEST_CASE("messages are asked for where that takes less than their copies", "[model][eager]") {
    const auto rdma = link(700, 100, 0.08);  // 100 Gbit/s
    const auto limit = eager_max(rdma, {ten_gigabytes});
    // 2 x 900 + 200 = 2000 ns for asking are 10,000 bytes copied twice, with the margin 11,000.
    CHECK(limit >= 10'000);
    CHECK(limit <= 11'500);
    CHECK(limit % 512 == 0);
    CHECK(1.05 * rendezvous(rdma, limit) >= eager(rdma, ten_gigabytes, limit));
    CHECK(1.05 * rendezvous(rdma, limit + 512) < eager(rdma, ten_gigabytes, limit + 512));
    // Where the receiver's memory must be registered first, that takes time, too.
    CHECK(eager_max(rdma, {.copying = ten_gigabytes, .opening = Nanos(600)}) > limit + 2'500);
    CHECK(eager_max(rdma, {.copying = ten_gigabytes, .opening = Nanos(2'000)}) == EagerBounds{}.most);
    // Farther away asking takes longer; where nothing is copied it is never worth while.
    CHECK(eager_max(link(1'500, 100, 0.08), {ten_gigabytes}) == EagerBounds{}.most);
    CHECK(eager_max(rdma, {}) == EagerBounds{}.most);
    CHECK(eager_max(rdma, {.copying = ten_gigabytes, .by_processors = true}) == EagerBounds{}.most);
    CHECK(eager_max(rdma, {PerByte{0.05}}) == EagerBounds{}.most);
    CHECK(eager_max(link(20'000, 3'000, 8), {ten_gigabytes}) == EagerBounds{}.most);
}

TEST_CASE("how large messages were measured decides, where they were", "[model][eager]") {
    auto model = link(700, 100, 0.5);
    model.ranges[0].up_to_bytes = 16'500;
    model.ranges.push_back(link(700, 100, 0.08).ranges[0]);  // they are put, and frames are copied on their way
    CHECK(eager_max(model, {}) < 6'000);
    model.ranges[0].up_to_bytes = 15'000;  // found a step early
    CHECK(eager_max(model, {}) < 6'000);
    // A change elsewhere says nothing of puts: a quick probe makes such ranges of little evidence.
    model.ranges[0].up_to_bytes = 8192;
    CHECK(eager_max(model, {}) == EagerBounds{}.most);
    model.ranges[0].up_to_bytes = 16'500;
    // Where putting one takes longer than frames do, asking is worth even less.
    model.ranges.back().L.fixed = Nanos(9'000);
    CHECK(eager_max(model, {}) == EagerBounds{}.most);
}

TEST_CASE("large messages that were measured do not decide by what they would take if they were small",
          "[model][eager]") {
    auto model = link(200, 50, 0.1);
    model.ranges[0].up_to_bytes = 16'500;
    model.ranges.push_back(link(-3'100, 50, 0.3).ranges[0]);  // 2 us with 16 KiB, and less than nothing with 4 KiB
    CHECK(eager_max(model, {}) == EagerBounds{}.most);
}

TEST_CASE("an eager maximum is within bounds, whatever the model", "[model][eager]") {
    const auto fast = link(0, 0, 0);
    CHECK(eager_max(fast, {ten_gigabytes}) == EagerBounds{}.least);
    CHECK(eager_max(fast, {ten_gigabytes}, {.most = 1024}) == 1024);  // the user's bound is below the least
    CHECK(eager_max(fast, {ten_gigabytes}, {.most = 0}) == 0);
    auto absurd = link(1e13, 1e13, 1e13);
    absurd.ranges[0].L.per_byte.ns = -1e13;
    absurd.jitter = Nanos(1e13);
    for (const auto& model : {absurd, link(-1e13, 0, 0), link(0, 1e13, 0), link(0, 0, 1e13)}) {
        for (const double copying : {0.0, 0.1, 1e13}) {
            const auto limit = eager_max(model, {{copying}});
            CHECK(limit >= EagerBounds{}.least);
            CHECK(limit <= EagerBounds{}.most);
        }
    }
}

TEST_CASE("messages that no frame holds are sent unasked where asking takes long beside them", "[model][eager]") {
    const EagerBounds bounds{.most = 64 * 1024};
    const auto unasked = [&](double latency, double per_byte, const model::EagerCosts& costs = {ten_gigabytes}) {
        const auto made = link(latency, 300, per_byte);
        const auto limit = model::unasked_max(made, costs, bounds);
        CHECK((limit == 0 || (limit > bounds.frame && limit <= bounds.most)));
        if (limit > 0) CHECK(1.01 * eager(made, costs.copying, limit) < rendezvous(made, limit) + costs.opening);
        if (limit > 0 && limit < bounds.most)
            CHECK(1.01 * eager(made, costs.copying, limit + 512) >= rendezvous(made, limit + 512) + costs.opening);
        return limit;
    };
    CHECK(unasked(10'000, 0.1) == bounds.most);  // 20 us of asking, 7 of copying at most
    CHECK(unasked(2'000, 0.1) > 32 * 1024);      // 5 us
    CHECK(unasked(2'000, 0.1) < bounds.most);
    CHECK(unasked(500, 0.1, {PerByte{0.3}}) == 0);
    CHECK(unasked(20'000, 8) == bounds.most);  // 524 us of sending
    CHECK(unasked(20'000, 80) < bounds.most);  // ten times as many
    CHECK(unasked(2'000, 80) == 0);
    CHECK(unasked(2'000, 0.1, {ten_gigabytes, false, Nanos(20'000)}) == bounds.most);
}

TEST_CASE("a link that carries a part of a message is waited for less, and what asking takes counts more",
          "[model][eager]") {
    const EagerBounds bounds{.most = 128 * 1024};
    const auto made = link(20'000, 300, 80);  // 100 Mbit/s
    const auto unasked = [&](double part) {
        return model::unasked_max(made, {.copying = ten_gigabytes, .part = part}, bounds);
    };
    const auto alone = unasked(1);
    CHECK(alone > bounds.frame);
    CHECK(alone < 64 * 1024);
    CHECK(unasked(0.5) > alone + alone / 2);  // what is copied remains
    CHECK(unasked(0.5) <= 2 * alone + 1024);
    CHECK(unasked(0.1) == bounds.most);
}

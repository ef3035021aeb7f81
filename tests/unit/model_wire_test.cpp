// What prober and mirror send each other; the mirror; the limiter.
#include <catch2/catch.hpp>

#include <random>

#include "model/limiter.hpp"
#include "model/mirror.hpp"
#include "model/probe_wire.hpp"
#include "model/prober.hpp"
#include "model/watch.hpp"

using namespace railmux;
using model::ProbeReply;
using model::ProbeRequest;

namespace {

std::vector<std::byte> frame(auto header, std::size_t payload) {
    const auto bytes = model::encode(header);
    std::vector<std::byte> result(bytes.begin(), bytes.end());
    result.resize(result.size() + payload);
    return result;
}

}  // namespace

TEST_CASE("requests and replies read back, and nothing malformed does", "[model]") {
    const ProbeRequest request{.train = 7, .n = 10, .index = 9, .bytes = 100};
    CHECK(model::parse_request(frame(request, 100)) == request);
    CHECK_FALSE(model::parse_request(frame(request, 99)));
    CHECK_FALSE(model::parse_request(frame(request, 101)));
    CHECK_FALSE(model::parse_request({}));
    CHECK_FALSE(model::parse_request(frame(ProbeRequest{.n = 0}, 0)));
    CHECK_FALSE(model::parse_request(frame(ProbeRequest{.n = 2, .index = 2}, 0)));
    CHECK_FALSE(model::parse_request(frame(ProbeRequest{.n = 1000}, 0)));

    const ProbeReply reply{.train = 7, .bytes = 1, .held = 5, .blind = 6, .receive_cpu = 7};
    CHECK(model::parse_reply(frame(reply, 1)) == reply);
    CHECK_FALSE(model::parse_reply(frame(reply, 0)));
    CHECK(model::parse_reply(frame(ProbeReply{.held = -5, .blind = base::second * 100'000}, 0)) ==
          ProbeReply{.held = 0, .blind = ProbeReply::max_time});
    model::Sample sample{.train = {.id = 7, .bytes = 1}};
    CHECK(model::answers(reply, sample));
    CHECK(sample.mirror_held == 5);
    sample.train.id = 8;
    CHECK_FALSE(model::answers(reply, sample));
    auto huge = frame(reply, 1);
    huge[23] = std::byte{0x80};
    CHECK_FALSE(model::parse_reply(huge));

    const ProbeRequest put{.train = 7, .n = 2, .index = 1, .put = 1 << 20};
    CHECK(model::parse_request(frame(put, 0)) == put);
    CHECK_FALSE(model::parse_request(frame(ProbeRequest{.put = (1 << 20) + 1}, 0)));
    CHECK_FALSE(model::parse_request(frame(ProbeRequest{.bytes = 1, .put = 1}, 1)));
    CHECK_FALSE(model::parse_reply(frame(ProbeReply{.put = 1, .bytes = 1}, 1)));
    const ProbeReply put_reply{.train = 7, .put = 1 << 20, .held = 5};
    CHECK(model::parse_reply(frame(put_reply, 0)) == put_reply);
    sample.train = {.id = 7, .bytes = 1 << 20};
    CHECK(model::answers(put_reply, sample));

    const model::ProbeMemory memory{.id = 1, .secret = ~std::uint64_t{0}, .bytes = 1 << 20};
    CHECK(model::parse_memory(frame(memory, 0)) == memory);
    CHECK_FALSE(model::parse_memory(frame(memory, 1)));
    CHECK_FALSE(model::parse_memory(frame(model::ProbeMemory{.bytes = (1 << 20) + 1}, 0)));

    std::mt19937_64 random(3);
    for (int i = 0; i < 20'000; ++i) {
        std::vector<std::byte> bytes(random() % 64);
        for (auto& byte : bytes) byte = static_cast<std::byte>(random() % 3);
        if (const auto parsed = model::parse_request(bytes)) CHECK(parsed->bytes == bytes.size() - ProbeRequest::size);
        if (const auto parsed = model::parse_reply(bytes)) CHECK(parsed->bytes == bytes.size() - ProbeReply::size);
        if (model::parse_memory(bytes)) CHECK(bytes.size() == model::ProbeMemory::size);
    }
}

TEST_CASE("a mirror answers each train once, after its last message", "[model]") {
    model::Mirror mirror;
    const auto message = [&](std::uint32_t train, std::uint16_t n, base::Nanoseconds at, base::Nanoseconds cpu = 0) {
        return mirror.arrived({.train = train, .n = n, .bytes = 64}, {.at = at, .blind = at / 10, .receive_cpu = cpu});
    };
    CHECK(message(1, 1, 100));
    CHECK(mirror.reply(130) == ProbeReply{.train = 1, .bytes = 64, .held = 30, .blind = 10});
    CHECK_FALSE(message(2, 3, 200, 9));
    CHECK_FALSE(message(2, 3, 210, 5));
    CHECK(message(2, 3, 220, 7));
    CHECK(mirror.reply(300) == ProbeReply{.train = 2, .bytes = 64, .held = 80, .blind = 22, .receive_cpu = 5});
    CHECK(mirror.reply(0).held == 0);
    CHECK_FALSE(message(3, 2, 400));
    CHECK_FALSE(message(4, 2, 410));  // 3 lost its rest
    CHECK(message(4, 2, 420));
    CHECK_FALSE(message(4, 2, 430));  // the number again: another train
    CHECK(message(4, 2, 440));
}

TEST_CASE("a limiter keeps any second below the share", "[model]") {
    constexpr base::Nanoseconds second = base::second;
    auto most = model::Limiter::most(8);  // 1 Gbit/s: 2.5 MB in a second
    model::Limiter limiter;
    CHECK(limiter.when(2'500'000, most, 0) == 0);
    CHECK_FALSE(limiter.when(2'500'001, most, 0));
    limiter.sent(1'000'000, 0);
    limiter.sent(1'000'000, second / 2);
    CHECK(limiter.when(500'000, most, second / 2) == second / 2);
    CHECK(limiter.when(500'001, most, second / 2) == second);
    CHECK(limiter.when(1'500'001, most, second / 2) == second * 3 / 2);
    CHECK(limiter.when(1'500'000, most, second) == second);
    most = model::Limiter::most(80);
    CHECK(limiter.when(250'000, most, second) == second * 3 / 2);
    CHECK(limiter.when(1 << 30, model::Limiter::most(0), 10 * second) == 10 * second);

    // What was sent at a rate that turned out to be too high is owed.
    model::Limiter owing;
    for (int i = 0; i < 10; ++i) owing.sent(100'000, i * base::millisecond);
    CHECK(owing.when(50'000, most, 10 * base::millisecond) == second + 7 * base::millisecond);
}

TEST_CASE("a watch tells pauses from its usual rhythm", "[model]") {
    model::Watch watch;
    base::Nanoseconds now = 1000;
    for (int i = 0; i < 100; ++i) CHECK(watch.looks(now += 100 + i % 3 * 50, 0) == 0);
    CHECK(watch.looks(now += 50'000, 0) > 49'000);
    CHECK(watch.looks(now += 100, 0) == 0);
    watch.woke(now += base::millisecond);
    CHECK(watch.looks(now += 100, 0) == 0);
}

TEST_CASE("a look that moves bytes for long is not blind, unless the thread was evicted", "[model]") {
    static std::uint64_t evictions;
    evictions = 5;
    model::Watch watch([] { return evictions; });
    base::Nanoseconds now = 1000;
    const auto look = [&](base::Nanoseconds takes, base::Nanoseconds away, std::uint32_t rail = 0) {
        const auto blind = watch.looks(now, rail);
        watch.looked(now += takes);
        now += away;
        return blind;
    };
    for (int i = 0; i < 100; ++i) CHECK(look(80, 20) == 0);
    look(50'000, 20);
    look(50'000, 20);  // whether the one before was evicted could not be known: nobody had asked
    CHECK(look(50'000, 20) < 100);
    ++evictions;
    CHECK(look(80, 20) > 49'000);
    CHECK(look(80, 50'000) == 0);
    CHECK(look(80, 20) > 49'000);  // it was elsewhere
    look(50'000, 20, 1);
    CHECK(look(80, 20, 0) > 49'000);  // it moved another rail's bytes
}

TEST_CASE("a later probe of a link counts its trains on, so that no late answer is taken for one of its own",
          "[model]") {
    model::Prober first(model::ProbeOptions{});
    const auto train = first.next(0, model::Application::idle).train;
    model::Prober second(model::ProbeOptions{.first_train = first.next_train()});
    const auto own = second.next(0, model::Application::idle).train;
    CHECK(own.id > train.id);
    model::Sample sample{.train = own};
    CHECK_FALSE(model::answers({.train = train.id, .bytes = own.bytes}, sample));
    CHECK(model::answers({.train = own.id, .bytes = own.bytes}, sample));
    CHECK_FALSE(model::answers({.train = own.id, .bytes = own.bytes + 1}, sample));
}

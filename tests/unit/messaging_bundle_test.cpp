#include <catch2/catch.hpp>

#include <random>
#include <utility>
#include <vector>

#include "messaging/bundle.hpp"
#include "pattern.hpp"
#include "rails/frame_pool.hpp"

using namespace railmux;
using messaging::Bundle;

namespace {

struct Sent {
    Tag tag = 0;
    std::vector<std::byte> data;
    bool operator==(const Sent&) const = default;
};

struct Read {
    bool good = false;
    std::vector<Sent> messages;
};

Read read(std::span<const std::byte> body) {
    Read all;
    all.good = messaging::read_bundle(body, [&](Tag tag, std::span<const std::byte> payload) {
        all.messages.push_back({tag, {payload.begin(), payload.end()}});
    });
    return all;
}

std::span<const std::byte> body_of(const rails::Frame& frame) {
    return {frame.data() + rails::FrameHeader::size, frame.bytes - rails::FrameHeader::size};
}

/// As many of these as fit.
std::vector<Sent> fill(Bundle& bundle, std::mt19937_64& random, int tags) {
    std::vector<Sent> sent;
    while (true) {
        const Tag tag = 0 - Tag{random() % static_cast<unsigned>(tags)};  // the first of which is 0, the others large
        Sent one{tag, test::pattern(random() % (Bundle::most_message + 1), random())};
        if (!bundle.has_room(one.data.size())) return sent;
        bundle.add(one.tag, one.data);
        sent.push_back(std::move(one));
    }
}

std::vector<std::byte> bytes(std::initializer_list<int> values) {
    std::vector<std::byte> all;
    for (const int value : values) all.push_back(static_cast<std::byte>(value));
    return all;
}

}  // namespace

TEST_CASE("a bundle brings its messages in order, whatever their tags and lengths", "[messaging][bundle]") {
    rails::FramePool pool;
    std::mt19937_64 random(1);
    for (int round = 0; round < 1000; ++round) {
        Bundle bundle;
        bundle.begin(pool.take(Bundle::most_bytes));
        const auto sent = fill(bundle, random, 1 + round % 3);
        auto* const frame = bundle.close();
        REQUIRE_FALSE(bundle.open());
        REQUIRE(sent.size() >= 3);
        CHECK(frame->type == rails::FrameType::bundle);
        CHECK(frame->bytes <= Bundle::most_bytes);
        std::size_t payload = 0;
        for (const auto& one : sent) payload += one.data.size();
        CHECK(frame->payload == payload);
        CHECK(frame->aux == payload);
        const auto got = read(body_of(*frame));
        CHECK(got.good);
        CHECK(got.messages == sent);
        pool.give(frame);
    }
}

TEST_CASE("of a bundle that is cut short nothing is read that is not there", "[messaging][bundle]") {
    rails::FramePool pool;
    std::mt19937_64 random(2);
    Bundle bundle;
    bundle.begin(pool.take(Bundle::most_bytes));
    const auto sent = fill(bundle, random, 2);
    auto* const frame = bundle.close();
    const auto whole = body_of(*frame);
    std::size_t good = 0;
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::vector<std::byte> body(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        const auto got = read(body);
        good += got.good ? 1 : 0;
        REQUIRE(got.messages.size() < sent.size());
        CHECK(std::equal(got.messages.begin(), got.messages.end(), sent.begin()));
    }
    CHECK(good == sent.size() - 1);  // behind each message but the last
}

TEST_CASE("malformed bundles are refused", "[messaging][bundle]") {
    CHECK_FALSE(read({}).good);
    CHECK_FALSE(read(bytes({0})).good);
    CHECK_FALSE(read(bytes({0, 0, 1, 2, 3, 4, 5, 6, 7})).good);     // half a tag
    CHECK_FALSE(read(bytes({0, 0x80})).good);                       // the tag of which message?
    CHECK_FALSE(read(bytes({2, 0, 1, 2, 3, 4, 5, 6, 7, 8})).good);  // no payload
    CHECK(read(bytes({0, 0, 1, 2, 3, 4, 5, 6, 7, 8})).good);
    CHECK(read(bytes({0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0x80, 9})).good);
    CHECK_FALSE(read(bytes({0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 0x80, 9})).good);
    CHECK_FALSE(read(bytes({0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff})).good);

    // What is kept of a message takes a hundred times the two bytes that bring an empty one.
    const auto of = [](std::size_t messages, std::size_t size) {
        std::vector<std::byte> body(8 + messages * (2 + size));
        body[1] = std::byte{static_cast<unsigned char>(size >> 8)};
        for (std::size_t i = 1; i < messages; ++i) {
            auto* word = &body[8 + i * (2 + size)];
            word[0] = std::byte{static_cast<unsigned char>(size & 0xff)};
            word[1] = std::byte{static_cast<unsigned char>(0x80 | size >> 8)};
        }
        body[0] = std::byte{static_cast<unsigned char>(size & 0xff)};
        return body;
    };
    CHECK(read(of(Bundle::most_messages, 0)).good);
    CHECK_FALSE(read(of(Bundle::most_messages + 1, 0)).good);
    CHECK(read(of(3, Bundle::most_message)).good);
    CHECK_FALSE(read(of(3, Bundle::most_message + 1)).good);
}

// Seals: what they are over, and that nothing else passes.
#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <vector>

#include "base/crc32c.hpp"
#include "rails/frame_pool.hpp"
#include "rails/seal.hpp"

using namespace railmux;
using namespace railmux::rails;

namespace {

Frame* framed(FramePool& pool, std::size_t body) {
    Frame* frame = pool.take(FrameHeader::size + body);
    frame->type = FrameType::eager;
    frame->bytes = static_cast<std::uint32_t>(FrameHeader::size + body);
    write_header(frame->data(), {.type = FrameType::eager, .seq = 7});
    for (std::size_t i = 0; i < body; ++i) frame->data()[FrameHeader::size + i] = static_cast<std::byte>(i * 7);
    return frame;
}

std::span<const std::byte> on_wire(const Frame& frame) { return {frame.data(), frame.bytes + Seal::size}; }

}  // namespace

TEST_CASE("a sealed frame opens as it was, of every size that a pool gives", "[rails][seal]") {
    FramePool pool;
    for (const std::size_t body : {0, 1, 8, 104, 1000, 8000, 16408, 65512}) {
        Frame* frame = framed(pool, body);
        Frame* beside = framed(pool, body);  // where pools give neighbours
        seal(*frame);
        seal(*beside);
        for (const Frame* one : {frame, beside}) {
            const auto opened = open_sealed(on_wire(*one));
            REQUIRE(opened);
            CHECK(opened->put_sum == 0);
            REQUIRE(opened->frame.size() == one->bytes);
            CHECK(opened->frame.data() == one->data());
            CHECK(parse_header(opened->frame)->seq == 7);
        }
        pool.give(frame);
        pool.give(beside);
    }
}

TEST_CASE("a seal names the sum of all pieces of the put, as it is when it is handed to a link", "[rails][seal]") {
    FramePool pool;
    std::vector<std::byte> bytes(5000, std::byte{9});
    Frame* frame = framed(pool, 24);
    const std::array<std::size_t, 4> ends{1, 1, 4096, 5000};  // one of the pieces is empty
    std::size_t at = 0;
    for (const auto end : ends) {
        frame->pieces[frame->piece_count++] = {bytes.data() + at, end - at, 0};
        at = end;
    }
    seal(*frame);
    CHECK(open_sealed(on_wire(*frame))->put_sum == base::crc32c(bytes));
    const auto before = base::crc32c(bytes);
    bytes[4999] = std::byte{1};
    seal(*frame);  // the put is under way already
    CHECK(open_sealed(on_wire(*frame))->put_sum == before);
    frame->summed = false;  // it begins anew
    seal(*frame);
    CHECK(open_sealed(on_wire(*frame))->put_sum == base::crc32c(bytes));
    pool.give(frame);
}

TEST_CASE("no bit of a sealed frame can change, and none of its bytes be missing", "[rails][seal]") {
    FramePool pool;
    Frame* frame = framed(pool, 40);
    seal(*frame);
    std::vector<std::byte> bytes(on_wire(*frame).begin(), on_wire(*frame).end());
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        bytes[bit / 8] ^= std::byte{1} << bit % 8;
        REQUIRE_FALSE(open_sealed(bytes));
        bytes[bit / 8] ^= std::byte{1} << bit % 8;
    }
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        REQUIRE_FALSE(open_sealed(std::span(bytes).first(length)));
    }
    CHECK(open_sealed(bytes));
    pool.give(frame);
}

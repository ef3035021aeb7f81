#include "rails/probe_puts.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "forwarding_rail.hpp"
#include "rails/frame_pool.hpp"
#include "unit/rails_made.hpp"

using namespace railmux;
using transports::Access;

namespace {

/// Notes which memory is open, and has room for so many regions.
class NotedRegions final : public ForwardingRail {
public:
    struct Noted {
        std::uint64_t id = 0;
        std::span<std::byte> memory;
        Access access{};
    };
    explicit NotedRegions(std::size_t room)
        : ForwardingRail(std::make_unique<rails::test::MadeRail>(rails::test::made_traits("made"))), room_(room) {}

    std::vector<Noted> open;

    [[nodiscard]] base::Result<transports::Region> add_region(std::span<std::byte> memory, Access access) override {
        if (open.size() == room_) return Error(ErrorCode::system, "no more", "");
        open.push_back({++last_, memory, access});
        return transports::Region{.key = {.id = last_}, .local = last_};
    }
    void drop_region(const transports::Region& region) noexcept override {
        std::erase_if(open, [&](const Noted& noted) { return noted.id == region.key.id; });
    }

private:
    std::size_t room_;
    std::uint64_t last_ = 0;
};

bool within(std::span<const std::byte> part, std::span<const std::byte> all) {
    return part.data() >= all.data() && part.data() + part.size() <= all.data() + all.size();
}

}  // namespace

TEST_CASE("probe puts: they come from memory of their own, as an application's do, into which others put nothing",
          "[unit]") {
    NotedRegions rail(9);
    const auto puts = rails::ProbePuts::open(rail);
    REQUIRE(puts != nullptr);
    const auto here = puts->here();
    const auto in = std::ranges::find(rail.open, here.id, &NotedRegions::Noted::id);
    REQUIRE(in != rail.open.end());
    CHECK(in->access == Access::remote_write);
    CHECK(in->memory.size() == here.bytes);

    puts->know({.id = 77, .secret = 8, .bytes = here.bytes}, 1);
    rails::FramePool pool;
    auto* frame = pool.take(rails::FrameHeader::size);
    puts->attach(*frame, here.bytes, 0);
    REQUIRE(frame->put().size() == 1);
    const auto& piece = frame->put().front();
    const auto out = std::ranges::find(rail.open, piece.region, &NotedRegions::Noted::id);
    REQUIRE(out != rail.open.end());
    CHECK(out->access == Access::local);
    CHECK(piece.size == here.bytes);
    CHECK(within({static_cast<const std::byte*>(piece.data), piece.size}, out->memory));
    CHECK_FALSE(within({static_cast<const std::byte*>(piece.data), 1}, in->memory));
    puts->done();
    pool.give(frame);
}

TEST_CASE("probe puts: whatever was opened is closed again, also where there was no room for all of it", "[unit]") {
    for (const std::size_t room : {0U, 1U, 2U}) {
        NotedRegions rail(room);
        auto puts = rails::ProbePuts::open(rail);
        CHECK((puts != nullptr) == (room == 2));
        puts.reset();
        CHECK(rail.open.empty());
    }
}

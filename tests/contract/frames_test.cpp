// Frames: prefix, depth, ownership, sizes, gather lists, order, floods and fairness.
#include "world.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

using namespace railmux::contract;

namespace {

/// A ring of buffers that floods a link: each is filled, posted, poisoned when done, and used again.
class Flood {
public:
    using Size = std::function<std::size_t(std::uint64_t number)>;

    Flood(World& world, const End& from, std::uint64_t frames, std::size_t largest)
        : Flood(world, from, frames, [=](std::uint64_t number) { return 8 + number * 7919 % (largest - 7); }) {}
    Flood(World& world, const End& from, std::uint64_t frames, Size size)
        : world_(world), from_(from), frames_(frames), size_(std::move(size)) {
        const auto before = world.on_event;
        world.on_event = [this, before](Rail& rail, const Event& event) {
            before(rail, event);
            if (event.kind != EventKind::done || &rail != from_.rail || event.link != from_.id) return;
            auto& buffer = buffers_.at(event.cookie);
            std::ranges::fill(buffer, std::byte{0xdd});
            free_.push_back(event.cookie);
        };
    }
    /// Posts as many as the rail takes, in batches; a frame's first 8 bytes are its number, the rest its pattern.
    void pump() {
        while (true) {
            while (filled_.size() < batch && filled() < frames_) filled_.push_back(fill(filled()));
            std::vector<Segment> segments;
            for (const auto cookie : filled_) segments.push_back({buffers_[cookie].data(), buffers_[cookie].size()});
            std::vector<Work> works;
            for (std::size_t i = 0; i < filled_.size(); ++i) {
                works.push_back({.link = from_.id, .segments = {&segments[i], 1}, .cookie = filled_[i]});
            }
            const auto taken = world_.post(*from_.rail, works);
            posted_ += taken;
            filled_.erase(filled_.begin(), filled_.begin() + static_cast<std::ptrdiff_t>(taken));
            if (posted_ == frames_ || !filled_.empty()) return;
        }
    }
    void stop() { frames_ = filled(); }
    [[nodiscard]] std::uint64_t frames() const { return frames_; }
    [[nodiscard]] bool finished() const { return posted_ == frames_ && free_.size() == buffers_.size(); }

private:
    [[nodiscard]] std::uint64_t filled() const { return posted_ + filled_.size(); }
    std::uint64_t fill(std::uint64_t number) {
        if (free_.empty()) {
            free_.push_back(first_cookie + buffers_.size());
            buffers_[free_.back()];
        }
        const auto cookie = free_.back();
        free_.pop_back();
        auto& buffer = buffers_[cookie];
        buffer = pattern(size_(number), number);
        std::memcpy(buffer.data(), &number, 8);
        return cookie;
    }

    static constexpr std::uint64_t first_cookie = 1ULL << 40;
    static constexpr std::size_t batch = 32;
    World& world_;
    End from_;
    std::uint64_t frames_;
    Size size_;
    std::uint64_t posted_ = 0;
    std::map<std::uint64_t, Bytes> buffers_;
    std::vector<std::uint64_t> free_;
    std::vector<std::uint64_t> filled_;  // and not yet accepted
};

/// Checks a flood's frames: each whole, each once, in order where the rail says so.
class Checker {
public:
    Checker(World& world, const End& at) : at_(at), ordered_(at.rail->traits().ordered) {
        const auto before = world.on_event;
        world.on_event = [this, before](Rail& rail, const Event& event) {
            before(rail, event);
            if (event.kind == EventKind::received && &rail == at_.rail && event.link == at_.id) take(event.data);
        };
    }
    [[nodiscard]] std::uint64_t count() const { return count_; }

private:
    void take(std::span<const std::byte> frame) {
        std::uint64_t number = 0;
        if (frame.size() < 8) FAIL("a frame that was not sent");
        std::memcpy(&number, frame.data(), 8);
        auto whole = pattern(frame.size(), number);
        std::memcpy(whole.data(), &number, 8);
        if (!std::ranges::equal(frame, whole)) FAIL("frame " << number << " is damaged, after " << count_ << " others");
        if (ordered_ && number != count_) FAIL("frame " << number << " came in place " << count_);
        if (!seen_.insert(number).second) FAIL("frame " << number << " came twice");
        ++count_;
    }
    End at_;
    bool ordered_;
    std::set<std::uint64_t> seen_;
    std::uint64_t count_ = 0;
};

}  // namespace

TEST_CASE("frames of every size arrive whole", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        const std::size_t most = world.a().traits().max_frame;
        std::vector<std::size_t> sizes{0, 1, 2, 7, 8, 63, 64, 255, 256, 257, 1024, 1460, 4096, most - 1, most, 0, most};
        for (const auto size : sizes) {
            const auto before = world.log(far).frames.size();
            world.send(near, pattern(size, size));
            world.until("the frame", [&] { return world.log(far).frames.size() == before + 1; });
            CHECK(world.log(far).frames.back().size() == size);
            CHECK(is_pattern(world.log(far).frames.back(), size));
        }
        world.until_done(near);
        CHECK(world.log(near).done == sizes.size());
        CHECK(world.log(near).lost == 0);
    });
}

TEST_CASE("nothing completes inside post, and a refused tail may be posted again", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        const auto depth = world.a().traits().tx_depth;
        const std::size_t count = depth + 50;
        std::vector<Bytes> buffers;
        std::vector<Segment> segments(count);
        std::vector<Work> works;
        for (std::size_t i = 0; i < count; ++i) {
            buffers.push_back(pattern(8 + i % 50, i));
            std::memcpy(buffers[i].data(), &i, sizeof i);
            segments[i] = {buffers[i].data(), buffers[i].size()};
            works.push_back({.link = near.id, .segments = {&segments[i], 1}, .cookie = 1000 + i});
        }
        std::size_t posted = 0;
        const auto before = world.log(near).done;
        for (std::size_t taken = 1; taken > 0; posted += taken) {
            taken = world.post(world.a(), std::span(works).subspan(posted));  // World checks the depth
        }
        CHECK(posted <= depth);
        CHECK(world.log(near).done == before);
        std::ranges::fill(segments, Segment{});  // only the bytes are still needed
        for (std::size_t i = posted; i < count; ++i) segments[i] = {buffers[i].data(), buffers[i].size()};
        world.post_all(world.a(), std::span(works).subspan(posted));
        world.until("all frames", [&] { return world.log(far).frames.size() == count; });
        world.until_done(near);
        world.settle();
        CHECK(world.log(near).done == count);
        CHECK(world.log(far).frames.size() == count);
        std::vector<std::size_t> numbers;
        for (const auto& frame : world.log(far).frames) std::memcpy(&numbers.emplace_back(), frame.data(), 8);
        if (world.a().traits().ordered) CHECK(std::ranges::is_sorted(numbers));
        std::ranges::sort(numbers);
        for (std::size_t i = 0; i < count; ++i) CHECK(numbers[i] == i);
    });
}

TEST_CASE("quiet sends are over when they are accepted, on a dead link as well", "[contract]") {
    on_each_fixture([](World& world) {
        const std::size_t most = world.a().traits().quiet_max;
        if (most == 0) return;
        End near, far;
        std::tie(near, far) = world.link();
        std::vector<std::size_t> sizes{0, 1, 3, 7, 8, 15, 16, 31, 32, 33, most - 1, most};
        const auto post = [&](std::size_t size) {
            auto bytes = pattern(size, size);
            const std::array<Segment, 2> halves{{{bytes.data(), size / 2}, {bytes.data() + size / 2, size - size / 2}}};
            const auto whole = Segment{bytes.data(), size};
            const bool two = size % 2 != 0 && world.a().traits().max_segments >= 2;
            const Work work{.quiet = true,
                            .link = near.id,
                            .segments = two ? std::span<const Segment>(halves) : std::span(&whole, 1),
                            .cookie = world.next_cookie()};
            world.post_all(world.a(), {&work, 1});
            std::ranges::fill(bytes, std::byte{0xdd});  // the buffer is ours again
        };
        for (const auto size : sizes) post(size);
        world.until("the frames", [&] { return world.log(far).frames.size() == sizes.size(); });
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            CHECK(world.log(far).frames[i].size() == sizes[i]);
            CHECK(is_pattern(world.log(far).frames[i], sizes[i]));
        }
        world.disconnect(near);
        post(most);
        world.until("the end of the link", [&] { return world.log(near).down && world.log(far).down; });
        post(most);
        world.settle();
        CHECK(world.log(near).done == 0);
    });
}

TEST_CASE("short sends arrive in order with others, and are refused when there is no room", "[contract]") {
    on_each_fixture([](World& world) {
        const std::size_t most = world.a().traits().quiet_max;
        if (most == 0) return;
        End near, far;
        std::tie(near, far) = world.link();
        const auto send_short = [&](std::size_t number) {
            auto bytes = pattern(number % (most + 1), number);
            const bool taken = world.a().send_short(near.id, bytes, number % 3 == 0);
            std::ranges::fill(bytes, std::byte{0xdd});  // the buffer is ours again
            return taken;
        };
        std::size_t sent = 0;
        while (sent < 100'000 && send_short(sent)) ++sent;  // nobody reads meanwhile
        CHECK(sent > 0);
        CHECK(sent < 100'000);
        world.until("room again, and all else", [&] {
            if (sent % 2 == 0) return send_short(sent) && ++sent % 100 == 0;
            auto bytes = pattern(sent % (most + 1), sent);
            const Segment segment{bytes.data(), bytes.size()};
            const Work work{.quiet = true, .link = near.id, .segments = {&segment, 1}};
            return world.post(world.a(), {&work, 1}) == 1 && ++sent % 100 == 0;
        });
        world.until("the frames", [&] { return world.log(far).frames.size() == sent; });
        for (std::size_t i = 0; i < sent; ++i) {
            REQUIRE(world.log(far).frames[i].size() == i % (most + 1));
            REQUIRE(is_pattern(world.log(far).frames[i], i));
        }
        world.disconnect(near);
        world.until("the end of the link", [&] { return world.log(near).down && world.log(far).down; });
        CHECK(send_short(0));  // over when it is accepted, here as well
        world.settle();
        CHECK(world.log(near).done == 0);
    });
}

TEST_CASE("gather lists arrive as one frame", "[contract]") {
    on_each_fixture([](World& world) {
        End near, far;
        std::tie(near, far) = world.link();
        const auto& traits = world.a().traits();
        auto source = pattern(traits.max_frame, 9);
        for (std::uint32_t pieces = 0; pieces <= traits.max_segments; ++pieces) {
            for (const std::size_t total : {std::size_t{pieces}, std::size_t{1000}, std::size_t{traits.max_frame}}) {
                std::vector<Segment> segments;
                std::size_t at = 0;
                for (std::uint32_t i = 0; i < pieces; ++i) {  // uneven pieces, some of them empty
                    const auto size = i + 1 == pieces ? total - at : (i % 3 == 1 ? 0 : (total - at) / 3);
                    segments.push_back({size == 0 ? nullptr : source.data() + at, size});
                    at += size;
                }
                const Work work{.link = near.id, .segments = segments, .cookie = world.next_cookie()};
                const auto before = world.log(far).frames.size();
                world.post_all(world.a(), {&work, 1});
                world.until("the frame", [&] { return world.log(far).frames.size() == before + 1; });
                CHECK(std::ranges::equal(world.log(far).frames.back(), std::span(source).first(at)));
            }
        }
    });
}

TEST_CASE("a flood in both directions loses, damages and reorders nothing", "[contract]") {
    on_each_fixture([](World& world) {
        world.keep_frames = false;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::uint64_t frames = 3000;
        Flood there(world, near, frames, 600), back(world, far, frames, 600);
        Checker at_b(world, far), at_a(world, near);
        world.until("the end of both floods", [&] {
            there.pump();
            back.pump();
            return there.finished() && back.finished() && at_b.count() == frames && at_a.count() == frames;
        });
        world.settle();
        CHECK(at_b.count() == frames);
        CHECK(at_a.count() == frames);
    });
}

TEST_CASE("largest frames flood through a receiver that looks rarely", "[contract]") {
    on_each_fixture([](World& world) {
        world.keep_frames = false;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::uint64_t frames = 150;
        Flood flood(world, near, frames, world.a().traits().max_frame);
        Checker checker(world, far);
        world.until("the end of the flood", [&] {
            for (int i = 0; i < 5; ++i) flood.pump();
            return flood.finished() && checker.count() == frames;
        });
    });
}

TEST_CASE("more large frames on their way than there is room for arrive whole, as do small ones among them",
          "[contract]") {
    on_each_fixture([](World& world) {
        world.keep_frames = false;
        End near, far;
        std::tie(near, far) = world.link();
        constexpr std::uint64_t frames = 300;
        const auto most = world.a().traits().max_frame;
        const auto size = [=](std::uint64_t number) { return number % 16 != 0 ? most : std::size_t{900}; };
        Flood there(world, near, frames, size), back(world, far, frames, size);
        Checker at_b(world, far), at_a(world, near);
        world.until("the end of both floods", [&] {
            there.pump();
            back.pump();
            return there.finished() && back.finished() && at_b.count() == frames && at_a.count() == frames;
        });
    });
}

TEST_CASE("a flooded link leaves the others their turn", "[contract]") {
    on_each_fixture([](World& world) {
        world.keep_frames = false;
        End near, far;
        std::tie(near, far) = world.link();
        std::vector<std::pair<End, End>> others;
        for (int i = 0; i < 4; ++i) others.push_back(world.link());
        constexpr std::uint64_t frames = 20'000;  // 1.3 MB: about 5 ms of the time of a rail that is not fast
        Flood flood(world, near, frames, 64);
        Checker checker(world, far);
        world.until("the flood under way", [&] { return flood.pump(), checker.count() >= 100; });
        Bytes bytes = pattern(50, 1);
        const Segment segment{bytes.data(), bytes.size()};
        std::vector<Work> works;
        for (const auto& other : others) works.push_back({.link = other.first.id, .segments = {&segment, 1}});
        std::span<const Work> rest(works);
        const auto all = [&] {
            return std::ranges::all_of(others, [&](const auto& o) { return world.log(o.second).frames.size() == 1; });
        };
        world.until("a frame on each other link", [&] {
            flood.pump();
            rest = rest.subspan(world.post(world.a(), rest));
            return all();
        });
        CHECK(checker.count() < frames);  // they came through while the flood lasted
        flood.stop();
        world.until("the end of the flood", [&] {
            flood.pump();
            return flood.finished() && checker.count() == flood.frames();
        });
    });
}

TEST_CASE("one post carries works of many links", "[contract]") {
    on_each_fixture([](World& world) {
        std::vector<std::pair<End, End>> links;
        for (int i = 0; i < 7; ++i) links.push_back(world.link());
        constexpr std::size_t rounds = 30;
        Bytes bytes = pattern(rounds * 16, 3);
        std::vector<Segment> segments;
        for (std::size_t i = 0; i < rounds; ++i) segments.push_back({bytes.data() + 16 * i, 16});
        std::vector<Work> works;
        for (std::size_t i = 0; i < rounds; ++i) {
            for (const auto& link : links) {
                works.push_back({.link = link.first.id, .segments = {&segments[i], 1}, .cookie = works.size()});
            }
        }
        world.post_all(world.a(), works);
        for (const auto& link : links) {
            world.until("all frames", [&] { return world.log(link.second).frames.size() == rounds; });
            world.until_done(link.first);
            for (std::size_t i = 0; i < rounds && world.a().traits().ordered; ++i) {
                CHECK(std::ranges::equal(world.log(link.second).frames[i], std::span(bytes).subspan(16 * i, 16)));
            }
        }
    });
}

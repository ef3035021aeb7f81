#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace railmux::contract {

namespace {

constexpr auto patience = std::chrono::seconds(60);  // sanitizers on a busy machine; nothing takes a second by itself

/// FAIL is expanded here only: it is large, and asked for at every event.
void broken(const std::string& rule) { FAIL(rule); }

}  // namespace

bool is_pattern(std::span<const std::byte> bytes, std::uint64_t seed) {
    return test::same(bytes, pattern(bytes.size(), seed));
}

World::World(Fixture fixture, std::uint64_t seed) : fixture_(std::move(fixture)), random_(seed) {
    sides_[&a()];
    sides_[&b()];
}

World::~World() = default;

// --- Links -----------------------------------------------------------------------------------------------------------

LinkLog& World::log(const End& end) { return sides_[end.rail].links[{end.id.index, end.id.generation}]; }

End World::connect(Rail& from, std::span<const std::byte> address, std::span<const std::byte> hello) {
    const End end{&from, from.connect(address, hello)};
    auto& link = log(end);
    if (link.known) broken("connect gave an id that was in use before");
    link.known = true;
    return end;
}

End World::requested(Rail& at) {
    auto& requests = sides_[&at].requests;
    until("a connect request", [&] { return !requests.empty(); });
    const auto first = requests.front();
    requests.erase(requests.begin());
    return first;
}

std::pair<End, End> World::link() { return link(a(), b()); }

std::pair<End, End> World::link(Rail& from, Rail& to) {
    const auto near = connect(from, to.address(), {});
    const auto far = requested(to);
    to.accept(far.id, {});
    until("both ends up", [&] { return log(near).up && log(far).up; });
    return {near, far};
}

void World::disconnect(const End& end) {
    log(end).closing = true;
    end.rail->disconnect(end.id);
}

// --- Works -----------------------------------------------------------------------------------------------------------

std::size_t World::post(Rail& rail, std::span<const Work> works) {
    // Every other post is as for a slow network, which must make no difference here.
    std::vector<Work> posted(works.begin(), works.end());
    const bool slow = ++posts_ % 2 == 0;
    for (auto& work : posted) work.slow = slow;
    const auto taken = rail.post(posted);
    if (taken > works.size()) broken("rule 1: post took more than it was given");
    for (const auto& work : works.first(taken)) {
        if (work.quiet) continue;  // rule 2: it is over
        auto& link = log({&rail, work.link});
        ++link.outstanding[work.cookie];
        ++link.undone;
        const bool alive = link.up && !link.down && !link.closing;
        if (check_depth && alive && link.undone > rail.traits().tx_depth) {
            broken("rule 1: more works accepted than tx_depth");
        }
    }
    return taken;
}

void World::post_all(Rail& rail, std::span<const Work> works) {
    until("all works accepted", [&] {
        works = works.subspan(post(rail, works));
        return works.empty();
    });
}

std::uint64_t World::send(const End& from, std::span<const std::byte> bytes) {
    const auto cookie = next_cookie();
    auto& kept = sent_[cookie];
    kept.assign(bytes.begin(), bytes.end());
    const Segment segment{kept.data(), kept.size()};
    const Work work{.op = Op::send, .link = from.id, .segments = {&segment, 1}, .cookie = cookie};
    post_all(*from.rail, {&work, 1});
    return cookie;
}

// --- Time ------------------------------------------------------------------------------------------------------------

bool World::round() {
    auto count = poll(a());
    if (!one_rail() && fixture_.second) count += poll(b());
    return count > 0 || fixture_.idle();
}

void World::until(const char* what, const std::function<bool()>& reached) {
    const auto limit = std::chrono::steady_clock::now() + patience;
    int standstill = 0;
    while (!reached()) {
        standstill = round() ? 0 : standstill + 1;
        if (standstill > 100) broken(std::string("nothing moves any more; awaited: ") + what);
        if (std::chrono::steady_clock::now() > limit) broken(std::string("took too long; awaited: ") + what);
    }
}

void World::settle() {
    for (int quiet = 0; quiet < 100; ++quiet) {
        std::size_t count = poll(a());
        if (!one_rail() && fixture_.second) count += poll(b());
        if (count > 0) quiet = 0;
        if (count == 0) fixture_.idle();
    }
}

void World::until_done(const End& end) {
    until("all works done", [&] { return log(end).undone == 0; });
}

// --- Events ----------------------------------------------------------------------------------------------------------

std::size_t World::poll(Rail& rail) {
    auto& side = sides_[&rail];
    for (const auto& [view, content] : side.lent) {
        if (!test::same(view, content)) broken("rule 4: received bytes changed before the next poll");
    }
    side.lent.clear();
    std::array<Event, 64> events;
    const auto room = random_() % 4 == 0 ? 1 + random_() % events.size() : events.size();
    const auto count = rail.poll(std::span(events).first(room));
    if (count > room) broken("poll gave more events than there was room for");
    for (const auto& event : std::span(events).first(count)) take(rail, side, event);
    return count;
}

void World::take(Rail& rail, Side& side, const Event& event) {
    auto& link = log({&rail, event.link});
    const auto bytes = Bytes(event.data.begin(), event.data.end());
    if (!bytes.empty()) side.lent.emplace_back(event.data, bytes);
    const bool open = link.up && !link.down;
    switch (event.kind) {
        case EventKind::done: take_done(link, event); break;
        case EventKind::received:
            if (!open) broken("rule 5: a frame on a link that is not up");
            if (bytes.size() > rail.traits().max_frame) broken("rule 4: a frame larger than max_frame");
            link.frames.push_back(keep_frames ? bytes : Bytes{});
            break;
        case EventKind::notified:
            if (!open) broken("rule 5: a notification on a link that is not up");
            link.immediates.push_back(event.immediate);
            break;
        case EventKind::connect_request:
            if (link.known) broken("a request for a link that was known before");
            link.known = link.requested = true;
            link.hello = bytes;
            side.requests.push_back({&rail, event.link});
            break;
        case EventKind::link_up:
            if (!link.known || link.up || link.down) broken("link_up out of turn");
            link.up = true;
            link.reply = bytes;
            break;
        case EventKind::link_down:
            if (!link.known || link.down) broken("rule 5: link_down out of turn");
            if (link.undone != 0) broken("rule 5: link_down before all works were done");
            if (event.text.empty()) broken("link_down without a cause");
            link.down = true;
            link.cause = event.text;
            if (!link.up) link.reply = bytes;
            break;
        case EventKind::devices_changed: return;  // somebody else made an interface
        case EventKind::moved: return;
        case EventKind::rail_up: broken("rail_up without a rail_down"); break;
        case EventKind::rail_down: broken("rail_down: " + std::string(event.text)); break;
    }
    on_event(rail, event);
}

void World::take_done(LinkLog& link, const Event& event) {
    const auto work = link.outstanding.find(event.cookie);
    if (work == link.outstanding.end()) return broken("rule 2: done for no work outstanding");
    if (--work->second == 0) link.outstanding.erase(work);
    --link.undone;
    ++link.done;
    if (event.status == WorkStatus::link_lost) ++link.lost;
    if (event.status == WorkStatus::access_denied) ++link.denied;
    if (link.down && event.status != WorkStatus::link_lost) broken("rule 5: a work that succeeds on a dead link");
    const auto kept = sent_.find(event.cookie);
    if (kept == sent_.end()) return;
    std::ranges::fill(kept->second, std::byte{0xdd});  // the buffer is ours again
    sent_.erase(kept);
}

void on_each_fixture(const std::vector<FixtureMaker>& fixtures, const std::function<void(World&)>& body) {
    for (const auto& fixture : fixtures) {
        DYNAMIC_SECTION(fixture.name) {
            const std::uint64_t seed = Catch::rngSeed();
            INFO("fixture " << fixture.name << ", seed " << seed);
            World world(fixture.make(seed), seed);
            body(world);
            world.settle();
        }
    }
}

}  // namespace railmux::contract

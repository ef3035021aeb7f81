// What is written into shared memory, or said through the socket, by a process that went mad: it ends its own link at most.
#include <catch2/catch.hpp>

#include "shm_strangers.hpp"

using namespace shm_strangers;

TEST_CASE("nonsense in shared memory ends its link, and no other", "[shm][hostile]") {
    std::mt19937_64 random(Catch::rngSeed());
    Victim victim;
    Stranger good(victim);
    good.say_hello();
    victim.poll(300);
    REQUIRE(victim.up == 1);
    for (int round = 0; round < 400; ++round) {
        Stranger bad(victim);
        bad.say_hello();
        victim.poll(300);
        auto& block = *bad.made.block.get();
        if (round % 4 == 0) {
            for (auto& word : {&block.side[0].taken, &block.side[1].taken}) word->store(random());
            block.side[0].sleep.store(static_cast<std::uint32_t>(random()));
        }
        for (std::uint32_t written = 0; written < 200; written += 20) {
            scribble(block, random, victim, written, 20);
            victim.poll(3);
        }
        CHECK(victim.guards_whole());
    }
    victim.poll(600);
    CHECK(victim.up == 401);
    CHECK(victim.down == 400);
    const shm::Head head{.number = 1, .size = 5, .kind = shm::Kind::frame};
    good.made.block.get()->way[0].slot[0].head.store(head.word());
    victim.poll(1);
    CHECK(good.made.block.get()->side[1].closed.load() == 0);
}

TEST_CASE("memory that could be taken away, and other strange things handed over, make no link", "[shm][hostile]") {
    Victim victim;
    const FileDescriptor small(::memfd_create("railmux", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const FileDescriptor unsealed(::memfd_create("railmux", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(::ftruncate(unsealed.get(), sizeof(shm::Block)) == 0);
    REQUIRE(::ftruncate(small.get(), 4096) == 0);
    REQUIRE(::fcntl(small.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0);
    std::array<int, 2> pipe{};
    REQUIRE(::pipe(pipe.data()) == 0);
    const FileDescriptor out(pipe[0]);
    const FileDescriptor in(pipe[1]);
    const auto hello = shm::Greeting{.kind = shm::GreetingKind::hello}.encode();
    const auto reply = shm::Greeting{.kind = shm::GreetingKind::reply}.encode();
    std::vector<Stranger> strangers;
    // Full, it would have who rings it wait until somebody reads it.
    const FileDescriptor blocking(::eventfd(0, EFD_CLOEXEC));
    for (int i = 0; i < 9; ++i) strangers.emplace_back(victim);
    auto& first = strangers.front();
    strangers[0].say(hello, {});
    strangers[1].say(hello, {first.made.file.get()});
    strangers[2].say(hello, {unsealed.get(), first.bell.get()});
    strangers[3].say(hello, {small.get(), first.bell.get()});
    strangers[4].say(hello, {first.made.file.get(), in.get()});
    strangers[5].say(reply, {first.made.file.get(), first.bell.get()});
    strangers[6].say(std::vector<std::byte>(1500, std::byte{1}), {});
    strangers[7].say(hello, {in.get(), in.get()});
    strangers[8].say(hello, {strangers[8].made.file.get(), blocking.get()});
    victim.poll(600);
    CHECK(victim.up == 0);
    for (auto& stranger : strangers) CHECK(stranger.hear().state == shm::Message::State::hung_up);
}

TEST_CASE("strangers fill no log", "[shm][hostile]") {
    const auto text = test::captured([] {
        Victim victim(base::LogLevel::warning);
        for (int i = 0; i < 50; ++i) {
            Stranger stranger(victim);
            stranger.say(std::vector<std::byte>(10, std::byte{1}), {});
            victim.poll(20);
        }
    });
    const auto lines = std::ranges::count(text, '\n');
    INFO(text);
    CHECK(lines >= 1);
    CHECK(lines <= 22);  // a new second may begin meanwhile
}

TEST_CASE("another version is told so in our own words", "[shm][hostile]") {
    Victim victim;
    Stranger other(victim);
    auto hello = shm::Greeting{.kind = shm::GreetingKind::hello, .version = 7}.encode();
    other.say(hello, {other.made.file.get(), other.bell.get()});
    victim.poll(600);
    auto answer = other.hear();
    REQUIRE(answer.state == shm::Message::State::arrived);
    shm::Greeting refusal;
    REQUIRE(shm::parse(answer.bytes, refusal) == shm::Parsed::complete);
    CHECK(refusal.kind == shm::GreetingKind::refusal);
    CHECK(other.hear().state == shm::Message::State::hung_up);
}

TEST_CASE("the side that connects learns of another version", "[shm][hostile]") {
    const auto address = shm::NodeAddress::make();
    const auto listener = shm::listen_at(address.socket_name()).take();
    Victim victim;
    const auto link = victim.rail.connect(address.encode(), {});
    const FileDescriptor socket(::accept(listener.get(), nullptr, nullptr));
    REQUIRE(shm::send_message(socket, shm::Greeting{.kind = shm::GreetingKind::refusal, .version = 9}.encode(), {}));
    std::optional<ErrorCode> code;
    for (int i = 0; i < 600 && !code; ++i) {
        std::array<Event, 8> events;
        for (const auto& event : std::span(events).first(victim.rail.poll(events))) {
            if (event.kind == EventKind::link_down && event.link == link) code = event.code;
        }
    }
    CHECK(code == ErrorCode::wrong_version);
}

TEST_CASE("where the memory of the other process cannot be read, all goes by the ring", "[shm][hostile]") {
    Victim victim;
    Stranger other(victim);
    other.say_hello(*other.mark + 1);
    victim.poll(300);
    REQUIRE(victim.up == 1);
    auto& block = *other.made.block.get();
    CHECK(block.side[1].can_fetch == 0);
    CHECK_FALSE(victim.rail.prefers_get(victim.link, 1 << 20));
    shm::RingWriter writer(block.way[0], block.side[1], false);
    const shm::PutHead head{.key_id = victim.region.key.id, .key_secret = victim.region.key.secret, .left = 4096};
    std::memcpy(writer.next_body(), &head, sizeof head);
    std::memset(writer.next_data(4096), 7, 4096);
    writer.publish(shm::Kind::put, 4096, shm::flag_last, 4096);
    victim.poll(10);
    CHECK(std::ranges::count(victim.memory, std::byte{7}) == 4096);
    std::vector<std::byte> bytes(100'000, std::byte{9});
    const Segment segment{bytes.data(), bytes.size()};
    const Work put{.op = Op::put, .link = victim.link, .segments = {&segment, 1}, .remote = {1, 2}};
    REQUIRE(victim.rail.post({&put, 1}) == 1);
    shm::RingReader reader(block.way[1], block.side[0], false);
    std::size_t came = 0;
    for (int i = 0; i < 100 && came < bytes.size(); ++i) {
        for (; reader.ready(); came += reader.head().size, static_cast<void>(reader.pop(reader.head().size))) {
            CHECK(reader.head().kind == shm::Kind::put);
            CHECK(*reader.data(reader.head().size) == std::byte{9});
        }
        reader.tell();
        victim.poll(1);
    }
    CHECK(came == bytes.size());
    const Work get{.op = Op::get, .link = victim.link, .segments = {&segment, 1}, .remote = {3, 5}};
    static_cast<shm::Board*>(other.board.memory.get())->show({3, 5}, victim.memory);
    REQUIRE(victim.rail.post({&get, 1}) == 1);
    victim.poll(10);
    CHECK(victim.others == std::vector{WorkStatus::ok, WorkStatus::access_denied});
    CHECK(std::ranges::count(bytes, std::byte{9}) == 100'000);
    CHECK(victim.down == 0);
}

TEST_CASE("what a process left in a full ring is taken, though others fill what it is lent from", "[shm][hostile]") {
    constexpr std::size_t others = 6, pieces = 6;         // more than are lent in one poll
    for (std::size_t gone = 0; gone <= others; ++gone) {  // any may be the last to be looked at
        INFO("link " << gone);
        Victim victim;
        std::vector<std::unique_ptr<Stranger>> strangers;
        for (std::size_t i = 0; i <= others; ++i) {
            strangers.push_back(std::make_unique<Stranger>(victim));
            strangers.back()->say_hello();
            victim.poll(300);
        }
        REQUIRE(victim.up == others + 1);
        REQUIRE(victim.rail.arm() >= 0);  // so that the next poll looks at everything
        for (std::size_t i = 0; i <= others; ++i) {
            auto& block = *strangers[i]->made.block.get();
            shm::RingWriter writer(block.way[0], block.side[1], false);
            for (std::size_t n = 0; n < (i == gone ? shm::slots : pieces); ++n) {
                REQUIRE(writer.next_body() != nullptr);
                if (i == gone) {
                    writer.publish(shm::Kind::frame, 8, 0, 0);
                } else {
                    REQUIRE(writer.next_data(shm::most_piece) != nullptr);
                    writer.publish(shm::Kind::piece, shm::most_piece, shm::flag_last, shm::most_piece);
                }
            }
        }
        strangers[gone]->socket.reset();
        victim.poll(100, 256);
        CHECK(victim.frames == shm::slots + others * pieces);
        CHECK(victim.down == 1);
    }
}

TEST_CASE("what frames in pieces took is free again after a burst of many links", "[shm]") {
    const auto used = [] {
        const auto heap = ::mallinfo2();
        return heap.uordblks + heap.hblkhd;
    };
    constexpr std::size_t links = 40;
    Victim victim;
    std::vector<std::unique_ptr<Stranger>> strangers;
    std::vector<shm::RingWriter> writers;
    for (std::size_t i = 0; i < links; ++i) {
        auto& block = *strangers.emplace_back(std::make_unique<Stranger>(victim))->made.block.get();
        strangers.back()->say_hello();
        victim.poll(300);
        writers.emplace_back(block.way[0], block.side[1], false);
    }
    REQUIRE(victim.up == links);
    const auto before = used();
    for (int burst = 0; burst < 3; ++burst) {
        for (const bool last : {false, true}) {
            for (auto& writer : writers) {
                REQUIRE(writer.next_body() != nullptr);
                REQUIRE(writer.next_data(shm::most_piece) != nullptr);
                const auto flags = static_cast<std::uint8_t>(last ? shm::flag_last : 0);
                writer.publish(shm::Kind::piece, shm::most_piece, flags, shm::most_piece);
            }
            victim.poll(100);
        }
    }
    CHECK(victim.frames == 3 * links);
    CHECK(used() < before + 5 * victim.rail.traits().max_frame);
}

TEST_CASE("a work's buffer is not given back while the other side reads it", "[shm][hostile]") {
    Victim victim;
    Stranger reader(victim);
    reader.say_hello();
    victim.poll(300);
    auto& theirs = reader.made.block.get()->side[0];
    theirs.can_fetch = 1;
    std::vector<std::byte> bytes(100'000);
    const Segment segment{bytes.data(), bytes.size()};
    const Work put{.op = Op::put, .link = victim.link, .segments = {&segment, 1}, .remote = {1, 2}};
    REQUIRE(victim.rail.post({&put, 1}) == 1);
    theirs.fetching = 1;
    victim.rail.disconnect(victim.link);
    CHECK(reader.made.block.get()->side[1].closed == 1);
    victim.poll(600);
    CHECK(victim.done + victim.down == 0);
    const Work late{.link = victim.link};
    REQUIRE(victim.rail.post({&late, 1}) == 1);
    SECTION("until it has stopped") { theirs.fetching = 0; }
    SECTION("until it is gone") { reader.socket.reset(); }
    victim.poll(300);
    CHECK(victim.done == 2);
    CHECK(victim.down == 1);
}

TEST_CASE("what was read from a side that closed meanwhile is not used", "[shm][hostile]") {
    Victim victim;
    Stranger writer(victim);
    writer.say_hello();
    victim.poll(300);
    auto& block = *writer.made.block.get();
    const shm::FetchHead head{
        .put = {.key_id = victim.region.key.id, .key_secret = victim.region.key.secret, .left = 10},
        .address = reinterpret_cast<std::uintptr_t>(&victim),
        .bytes = 10};
    std::memcpy(block.way[0].slot[0].body.data(), &head, sizeof head);
    block.side[0].closed = 1;
    block.way[0].slot[1].head = shm::Head{.number = 2, .kind = shm::Kind::frame}.word();
    block.way[0].slot[0].head = shm::Head{.number = 1, .kind = shm::Kind::fetch, .flags = shm::flag_last}.word();
    victim.poll(10);
    CHECK(victim.frames == 0);
    CHECK(victim.down == 1);
}

TEST_CASE("nobody else writes on a board", "[shm][hostile]") {
    const auto made = shm::Mapping::make("board", sizeof(shm::Board), shm::Mapping::Others::read).take();
    CHECK(::mmap(nullptr, sizeof(shm::Board), PROT_READ | PROT_WRITE, MAP_SHARED, made.file.get(), 0) == MAP_FAILED);
    CHECK(shm::Mapping::adopt_to_read(made.file, sizeof(shm::Board)));
}

// A rail of shared memory, and a process without one that says to it whatever it likes.
//
// Threads: one.
// Lifetime: a Victim outlives its Strangers.
#pragma once

#include <fcntl.h>
#include <malloc.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "captured.hpp"
#include "transports/shm/greeting.hpp"
#include "transports/shm/memory.hpp"
#include "transports/shm/rail.hpp"
#include "transports/shm/socket.hpp"

namespace shm_strangers {

using namespace railmux;
using namespace railmux::transports;
using base::FileDescriptor;

/// A rail that accepts whoever asks, and opens a region between two guards.
struct Victim {
    base::Logger log;
    shm::Rail rail{"shm:node", {.fetch_from = shm::least_fetch}, log};
    std::vector<std::byte> memory = std::vector<std::byte>(10'000 + 128, std::byte{0x55});
    Region region = rail.add_region(std::span(memory).subspan(64, 10'000), Access::remote_write).take();
    std::size_t up = 0, down = 0, done = 0, frames = 0;  // done: lost works
    std::vector<WorkStatus> others;                      // what became of other works
    LinkId link;                                         // the last one

    explicit Victim(base::LogLevel level = base::LogLevel::off) : log(level) {}
    void poll(int times, std::size_t most = 8) {
        for (std::array<Event, 256> events; times > 0; --times) {
            for (const auto& event : std::span(events).first(rail.poll(std::span(events).first(most)))) {
                if (event.kind == EventKind::connect_request) rail.accept(event.link, {});
                if (event.kind == EventKind::link_up) link = event.link;
                up += event.kind == EventKind::link_up ? 1 : 0;
                done += event.kind == EventKind::done && event.status == WorkStatus::link_lost ? 1 : 0;
                if (event.kind == EventKind::done && event.status != WorkStatus::link_lost)
                    others.push_back(event.status);
                frames += event.kind == EventKind::received ? 1 : 0;
                down += event.kind == EventKind::link_down ? 1 : 0;
                if (event.data.size() > rail.traits().max_frame) FAIL("a frame larger than max_frame");
                for (const auto byte : event.data) seen = seen ^ byte;  // every byte is there
            }
        }
    }
    [[nodiscard]] bool guards_whole() const {
        const auto whole = [](std::byte b) { return b == std::byte{0x55}; };
        return std::ranges::all_of(std::span(memory).first(64), whole) &&
               std::ranges::all_of(std::span(memory).last(64), whole);
    }
    [[nodiscard]] std::string name() const { return shm::NodeAddress::parse(rail.address())->socket_name(); }
    std::byte seen{};
};

/// The side that connects, without a rail.
struct Stranger {
    FileDescriptor socket;
    shm::SharedBlock::Made made = shm::SharedBlock::make().take();
    FileDescriptor bell{::eventfd(0, EFD_NONBLOCK)};
    std::unique_ptr<std::uint64_t> mark = std::make_unique<std::uint64_t>(42);  // the victim reads it later
    shm::Mapping::Made board = shm::Mapping::make("board", sizeof(shm::Board), shm::Mapping::Others::read).take();

    explicit Stranger(const Victim& victim) : socket(shm::connect_to(victim.name()).take()) {}
    void say(std::span<const std::byte> bytes, std::initializer_list<int> descriptors) {
        REQUIRE(shm::send_message(socket, bytes, std::vector<int>(descriptors)));
    }
    void say_hello() { say_hello(*mark); }
    void say_hello(std::uint64_t told) {
        const shm::Greeting hello{.kind = shm::GreetingKind::hello,
                                  .mark_address = reinterpret_cast<std::uintptr_t>(mark.get()),
                                  .mark = told};
        say(hello.encode(), {made.file.get(), bell.get(), board.file.get()});
    }
    [[nodiscard]] shm::Message hear() {
        auto message = shm::receive_message(socket, room);
        return message;
    }
    std::array<std::byte, 2048> room;
};

/// Slots in a row that begin as a reader expects them and go on as chance has it.
void scribble(shm::Block& block, std::mt19937_64& random, const Victim& victim, std::uint32_t from,
              std::uint32_t count) {
    for (auto number = from; number < from + count; ++number) {
        auto& slot = block.way[0].slot[number % shm::slots];
        for (auto& byte : slot.body) byte = static_cast<std::byte>(random());
        if (random() % 2 == 0) {  // with the right key
            const shm::FetchHead head{
                .put = {.key_id = victim.region.key.id,
                        .key_secret = victim.region.key.secret,
                        .offset = random() % 3 == 0 ? random() : random() % 11'000,
                        .left = random() % 3 == 0 ? random() : random() % 11'000},
                .address = random() % 2 == 0 ? random() : reinterpret_cast<std::uintptr_t>(&block),
                .bytes = random() % 3 == 0 ? random() : random() % 11'000};
            std::memcpy(slot.body.data(), &head, sizeof head);
        }
        const bool sane = random() % 8 != 0;
        const shm::Head head{.number = number + 1,
                             .size = static_cast<std::uint16_t>(sane ? random() % 57 : random()),
                             .kind = static_cast<shm::Kind>(sane ? random() % 4 + 1 : random() % 256),
                             .flags = static_cast<std::uint8_t>(random())};
        slot.head.store(head.word());
    }
}

}  // namespace shm_strangers

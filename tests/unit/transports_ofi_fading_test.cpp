// Endpoints that a rail has given up: what still comes to them, who asks there for a link, and when that is over.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transports/ofi/fading.hpp"
#include "unit/ofi_provider.hpp"

using namespace railmux;
using namespace railmux::transports::ofi;

namespace {

constexpr base::Nanoseconds look_spacing = base::millisecond;

using ofi_provider::Bytes;
using ofi_provider::Provider;

RailAddress address_of(const std::string& name, std::uint64_t host = 1) {
    RailAddress address{
        .host = host, .process = 5, .owner = 1, .format = FI_ADDR_STR, .provider = "shm", .fabric = "shm"};
    const auto text = std::as_bytes(std::span(name.c_str(), name.size() + 1));
    address.endpoint.assign(text.begin(), text.end());
    return address;
}

/// One endpoint that has been given up.
struct Faded {
    Provider provider;
    std::vector<Port> kept;
    std::unique_ptr<Fading> fading = std::make_unique<Fading>(kept);
    base::Nanoseconds now = base::second;
    std::deque<Bytes> messages;  // what the provider has written, at places that stay

    std::unique_ptr<Endpoint> open() {
        Port port;
        port.info.reset(fi_allocinfo());
        port.info->fabric_attr->prov_name = ::strdup("shm");  // freed with the info
        port.completions.reset(&provider.queue);
        port.peers.reset(&provider.addresses);
        port.endpoint.reset(&provider.endpoint);
        port.message_bytes = least_message;
        port.multi_receive = true;
        return std::make_unique<Endpoint>(std::move(port));
    }
    void add(std::vector<Bye> byes = {}) { fading->add(open(), address_of("self"), {}, std::move(byes)); }
    void look() { fading->poll(now += look_spacing); }
    /// Until it is over, at most so long: how long that took.
    base::Nanoseconds wait(base::Nanoseconds most) {
        const auto begun = now;
        while (fading->any() && now - begun < most) look();
        return now - begun;
    }
    /// Of a message in the first receive buffer.
    fi_cq_data_entry came(Bytes message, std::uint64_t flags = 0) {
        auto& kept_message = messages.emplace_back(std::move(message));
        return {.op_context = provider.posted.front(),
                .flags = flags,
                .len = kept_message.size(),
                .buf = kept_message.data(),
                .data = 0};
    }
    fi_cq_data_entry hello(const RailAddress& from, LinkName link) {
        return came(
            encode(Header{.kind = Kind::hello}, Hello{.from = link, .address = from.encode(), .bytes = Bytes(8)}));
    }
    /// What went out as an answer: the links whose peers were refused.
    std::vector<LinkName> refused() {
        std::vector<LinkName> links;
        for (const auto& sent : provider.sent) {
            std::span<const std::byte> message = sent.message;
            const auto header = take_header(message);
            if (header && header->kind == Kind::refusal) links.push_back(header->to);
        }
        return links;
    }
};

}  // namespace

TEST_CASE("fading: what comes is taken, and a buffer that it filled is posted again", "[transports][ofi]") {
    Faded f;
    f.add();
    const auto posted = f.provider.posted.size();
    for (int i = 0; i < 100; ++i) f.provider.coming.push_back(f.came(Bytes(64)));
    f.provider.coming.push_back(f.came(Bytes(64), FI_MULTI_RECV));
    while (!f.provider.coming.empty()) f.look();
    CHECK(f.provider.posted.size() == posted + 1);
    CHECK(f.provider.posted.back() == f.provider.posted.front());
    f.provider.failed = {f.provider.posted.front(), nullptr};  // what fails ends nothing, either
    f.look();
    f.look();
    CHECK(f.provider.failed.empty());
    CHECK(f.fading->any());
    CHECK(f.provider.sent.empty());
}

TEST_CASE("fading: whoever asks for a link is refused, by the name it gave, also where that was read before",
          "[transports][ofi]") {
    Faded f;
    auto endpoint = f.open();
    const std::array unread{f.hello(address_of("early"), {3, 33})};
    f.fading->add(std::move(endpoint), address_of("self"), unread, {});
    CHECK(f.refused() == std::vector<LinkName>{{3, 33}});
    f.provider.coming.push_back(f.hello(address_of("late"), {4, 44}));
    f.look();
    CHECK(f.refused() == std::vector<LinkName>{{3, 33}, {4, 44}});
    CHECK(f.provider.sent[0].to != f.provider.sent[1].to);
}

TEST_CASE("fading: nothing is said to who cannot be reached, or says nothing that means anything",
          "[transports][ofi]") {
    Faded f;
    f.add();
    f.provider.coming.push_back(f.hello(address_of("elsewhere", 2), {3, 33}));
    f.provider.coming.push_back(f.came(Bytes(3)));
    auto cut = encode(Header{.kind = Kind::hello}, Hello{.from = {3, 33}, .address = address_of("x").encode()});
    cut.resize(cut.size() - 5);
    f.provider.coming.push_back(f.came(cut));
    f.provider.coming.push_back(f.came(encode(Header{.kind = Kind::bye}, LinkName{3, 33}, {})));
    f.look();
    CHECK(f.provider.coming.empty());
    CHECK(f.provider.sent.empty());
    CHECK(f.fading->any());
}

TEST_CASE("fading: an address stays while something is on its way to it, however many ask", "[transports][ofi]") {
    Faded f;
    f.add();
    constexpr std::size_t many = 100;  // more than are remembered while nothing goes to them
    const auto ask = [&](std::size_t first) {
        for (auto i = first; i < first + many; ++i)
            f.provider.coming.push_back(f.hello(address_of(std::to_string(i)), {0, i}));
        while (!f.provider.coming.empty()) f.look();
    };
    ask(0);
    CHECK(f.provider.sent.size() == many);
    CHECK(f.provider.removed.empty());
    for (const auto& sent : f.provider.sent) f.provider.coming.push_back({.op_context = sent.context});
    ask(many);
    CHECK_FALSE(f.provider.removed.empty());
    CHECK(std::ranges::all_of(f.provider.removed, [](auto at) { return at < many; }));
    CHECK(f.provider.sent.size() == 2 * many);
}

TEST_CASE("fading: byes are said once each, as soon as the provider takes them", "[transports][ofi]") {
    Faded f;
    f.provider.full = true;
    f.add({{.to = 7, .message = Bytes(20)}, {.to = 8, .message = Bytes(20)}});
    f.look();
    CHECK(f.provider.injected.empty());
    f.provider.full = false;
    for (int i = 0; i < 3; ++i) f.look();
    REQUIRE(f.provider.injected.size() == 2);
    CHECK(f.provider.injected[0].to == 7);
    CHECK(f.provider.injected[1].to == 8);
}

TEST_CASE("fading: it is over when nothing has come for a second of looking", "[transports][ofi]") {
    Faded f;
    f.add();
    CHECK(f.wait(900 * base::millisecond) == 900 * base::millisecond);
    f.provider.coming.push_back(f.came(Bytes(64)));
    CHECK(f.wait(900 * base::millisecond) == 900 * base::millisecond);
    f.fading->poll(f.now += 60 * base::second);  // it computed: others had no chance to be answered
    CHECK(f.fading->any());
    CHECK(f.wait(base::second) < 150 * base::millisecond);
    CHECK_FALSE(f.fading->any());
}

TEST_CASE("fading: an endpoint is kept open, and counts as kept from the first, whichever way it ends",
          "[transports][ofi]") {
    Faded f;
    f.add();
    CHECK(f.fading->kept() == 1);
    const int how = GENERATE(0, 1, 2, 3);
    if (how == 0) f.wait(2 * base::second);
    if (how == 1) f.provider.broken = true, f.look();  // polling it is of no use
    if (how == 2) {                                    // nor where nothing can come any more
        f.provider.takes_receives = false;
        f.provider.coming.push_back(f.came(Bytes(64), FI_MULTI_RECV));
        f.look();
    }
    if (how < 3) {
        CHECK_FALSE(f.fading->any());
        CHECK(f.fading->kept() == 1);
    }
    f.fading.reset();
    REQUIRE(f.kept.size() == 1);
    CHECK_FALSE(f.provider.closed);
    f.kept.clear();
    CHECK(f.provider.closed);
}

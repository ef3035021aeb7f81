#include <catch2/catch.hpp>

#include "rails/handshake.hpp"
#include "rails/process_address.hpp"

using namespace railmux::rails;

namespace {

const Hello some_hello{.version = wire_version,
                       .epoch = 3,
                       .rail = 1,
                       .from = {.instance = 11, .rank = 5},
                       .to = 22,
                       .nonce = 99,
                       .job = make_job_key("job", "secret").job};

}  // namespace

TEST_CASE("hello and reply keep their fields", "[rails][handshake]") {
    const auto key = make_job_key("job", "secret");
    const auto hello = encode_hello(key, some_hello);
    const auto back = parse_hello(hello);
    REQUIRE(back);
    CHECK(back->epoch == 3);
    CHECK(back->rail == 1);
    CHECK(back->from.instance == 11);
    CHECK(back->from.rank == 5);
    CHECK(back->to == 22);
    CHECK(judge_hello(key, hello, 22) == Verdict::accepted);

    const auto reply = encode_reply(key, hello,
                                    {.version = wire_version,
                                     .verdict = Verdict::duplicate,
                                     .rail = 2,
                                     .epoch = 9,
                                     .from = {.instance = 22, .rank = 1},
                                     .nonce = 7});
    const auto parsed = parse_reply(reply);
    REQUIRE(parsed);
    CHECK(parsed->verdict == Verdict::duplicate);
    CHECK(parsed->epoch == 9);
    CHECK(parsed->from.instance == 22);
    CHECK(reply_proves_key(key, hello, reply));
    CHECK(proof_holds(key, hello, reply, make_proof(key, hello, reply)));
}

TEST_CASE("hello and reply say whether there are checksums, and no other field does", "[rails][handshake]") {
    const auto key = make_job_key("job", "secret");
    for (const bool wanted : {false, true}) {
        auto asks = some_hello;
        asks.checksum = wanted;
        asks.rail = max_rails - 1;
        const auto hello = encode_hello(key, asks);
        CHECK(parse_hello(hello)->checksum == wanted);
        CHECK(parse_hello(hello)->rail == max_rails - 1);
        for (const bool on : {false, true}) {
            const auto reply = encode_reply(key, hello, {.version = wire_version, .epoch = 255, .checksum = on});
            CHECK(parse_reply(reply)->checksum == on);
            CHECK(parse_reply(reply)->epoch == 255);
        }
    }
}

TEST_CASE("each kind of stranger is told apart", "[rails][handshake]") {
    const auto key = make_job_key("job", "secret");
    const auto hello = encode_hello(key, some_hello);
    CHECK(judge_hello(make_job_key("job", "other"), hello, 22) == Verdict::wrong_key);
    CHECK(judge_hello(make_job_key("other", "secret"), hello, 22) == Verdict::wrong_job);
    CHECK(judge_hello(key, hello, 23) == Verdict::wrong_process);
    auto newer = some_hello;
    newer.version = wire_version + 1;
    CHECK(judge_hello(key, encode_hello(key, newer), 22) == Verdict::wrong_version);
    CHECK(judge_hello(key, std::span(hello).first(40), 22) == Verdict::wrong_version);
}

TEST_CASE("any changed byte of the handshake is noticed", "[rails][handshake]") {
    const auto key = make_job_key("job", "secret");
    const auto hello = encode_hello(key, some_hello);
    const auto reply = encode_reply(key, hello, {.version = wire_version, .from = {.instance = 22, .rank = 1}});
    const auto proof = make_proof(key, hello, reply);
    for (std::size_t i = 0; i < hello.size(); ++i) {
        auto bad = hello;
        bad[i] ^= std::byte{1};
        CHECK(judge_hello(key, bad, 22) != Verdict::accepted);
        CHECK_FALSE(reply_proves_key(key, bad, reply));
    }
    for (std::size_t i = 0; i < reply.size(); ++i) {
        auto bad = reply;
        bad[i] ^= std::byte{1};
        CHECK_FALSE(reply_proves_key(key, hello, bad));
        CHECK_FALSE(proof_holds(key, hello, bad, proof));
    }
    CHECK_FALSE(proof_holds(key, hello, reply, std::span(proof).first(31)));
    CHECK_FALSE(proof_holds(make_job_key("job", "other"), hello, reply, proof));
}

TEST_CASE("a process address keeps everything, and no prefix of it passes", "[rails][address]") {
    ProcessAddress address{.instance = 77, .rank = 3, .pid = 4242, .host = "host-b", .rails = {}};
    address.rails.push_back({0, "tcp", 0x1122334455667788, {std::byte{1}, std::byte{2}}});
    address.rails.push_back({1, "verbs", 0, {}});
    const auto bytes = address.encode();
    const auto back = ProcessAddress::parse(bytes);
    REQUIRE(back);
    CHECK(back->instance == 77);
    CHECK(back->host == "host-b");
    REQUIRE(back->rails.size() == 2);
    CHECK(back->rails[0].identity == 0x1122334455667788);
    CHECK(back->rails[0].address.size() == 2);
    CHECK(back->rails[1].transport == "verbs");
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        CHECK_FALSE(ProcessAddress::parse(std::span(bytes).first(length)));
    }
    auto longer = bytes;
    longer.push_back(std::byte{0});
    CHECK_FALSE(ProcessAddress::parse(longer));
}

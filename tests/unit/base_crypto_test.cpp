#include "base/crypto.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace railmux::base;  // NOLINT: the functions under test

namespace {

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

// RFC 4231, test cases 1, 2, 3 and 6.
TEST_CASE("HMAC-SHA256 gives the known answers", "[crypto]") {
    CHECK(to_hex(hmac_sha256(bytes(std::string(20, '\x0b')), {bytes("Hi There")})) ==
          "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    CHECK(to_hex(hmac_sha256(bytes("Jefe"), {bytes("what do ya want "), bytes(""), bytes("for nothing?")})) ==
          "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    CHECK(to_hex(hmac_sha256(bytes(std::string(20, '\xaa')), {bytes(std::string(50, '\xdd'))})) ==
          "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    CHECK(to_hex(hmac_sha256(bytes(std::string(131, '\xaa')),
                             {bytes("Test Using Larger Than Block-Size Key - Hash Key First")})) ==
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// Checked against Python's hmac module.
TEST_CASE("an empty key is a key", "[crypto]") {
    CHECK(to_hex(hmac_sha256({}, {})) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

TEST_CASE("comparison looks at size and content", "[crypto]") {
    CHECK(equal_constant_time(bytes("abc"), bytes("abc")));
    CHECK_FALSE(equal_constant_time(bytes("abc"), bytes("abd")));
    CHECK_FALSE(equal_constant_time(bytes("abc"), bytes("abcd")));
    CHECK(equal_constant_time({}, {}));
}

TEST_CASE("random numbers differ", "[crypto]") {
    CHECK(random_u64() != random_u64());
    std::vector<std::byte> many(1000);
    fill_random(many);
    CHECK(std::vector<std::byte>(1000) != many);
    fill_random({});
}

#include "base/selector.hpp"

#include <catch2/catch.hpp>

#include <railmux/error.hpp>

using railmux::Error;
using railmux::ErrorCode;
using railmux::base::Selector;
using Match = Selector::Match;
using Strings = std::vector<std::string>;

namespace {

Match judge(const char* selector, const Strings& names, const Strings& addresses = {}) {
    return Selector::parse(selector).match(names, addresses);
}

std::string refusal(const char* selector) {
    try {
        static_cast<void>(Selector::parse(selector));
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::invalid_config);
        CHECK_FALSE(error.cure().empty());
        return error.what();
    }
    return "accepted";
}

}  // namespace

TEST_CASE("an empty selector and \"all\" include everything by default", "[selector]") {
    for (const char* text : {"", "  ", "all", "*", "all,*"}) {
        CHECK(judge(text, {"eth0"}) == Match::included_by_default);
    }
    CHECK(Selector{}.match(Strings{"eth0"}, {}) == Match::included_by_default);
}

TEST_CASE("names match one of the candidate's names exactly", "[selector]") {
    CHECK(judge("tcp:eth0", {"tcp:eth0", "eth0"}) == Match::included_explicitly);
    CHECK(judge("eth0", {"tcp:eth0", "eth0"}) == Match::included_explicitly);
    CHECK(judge("eth0", {"eth01"}) == Match::unlisted);
    CHECK(judge("mlx5_0:1, eth0", {"mlx5_0:1"}) == Match::included_explicitly);
}

TEST_CASE("globs match as in the shell", "[selector]") {
    CHECK(judge("eth*", {"eth12"}) == Match::included_explicitly);
    CHECK(judge("tcp:eth?", {"tcp:eth1"}) == Match::included_explicitly);
    CHECK(judge("tcp:eth?", {"tcp:eth12"}) == Match::unlisted);
    CHECK(judge("eth[02]", {"eth1"}) == Match::unlisted);
}

TEST_CASE("addresses and networks match what has such an address", "[selector]") {
    const Strings eth0{"10.77.1.1/24", "fe80::1%eth0"};
    CHECK(judge("10.77.1.1", {"eth0"}, eth0) == Match::included_explicitly);
    CHECK(judge("10.77.1.2", {"eth0"}, eth0) == Match::unlisted);
    CHECK(judge("10.77.0.0/16", {"eth0"}, eth0) == Match::included_explicitly);
    CHECK(judge("10.77.1.99/23", {"eth0"}, eth0) == Match::included_explicitly);  // host bits do not matter
    CHECK(judge("10.78.0.0/16", {"eth0"}, eth0) == Match::unlisted);
    CHECK(judge("0.0.0.0/0", {"eth0"}, eth0) == Match::included_explicitly);
    CHECK(judge("fe80::/10", {"eth0"}, eth0) == Match::included_explicitly);
    CHECK(judge("fe80::1", {"eth0"}, eth0) == Match::included_explicitly);
    CHECK(judge("::/0", {"eth1"}, {"10.0.0.1"}) == Match::unlisted);  // another family
    CHECK(judge("10.77.1.0/31", {"eth0"}, eth0) == Match::included_explicitly);
    CHECK(judge("10.77.1.2/31", {"eth0"}, eth0) == Match::unlisted);
}

TEST_CASE("excludes alone leave the rest included; an exclude beats every include", "[selector]") {
    CHECK(judge("^docker0", {"eth0"}) == Match::included_by_default);
    CHECK(judge("^docker0", {"docker0"}) == Match::excluded);
    CHECK(judge("eth*,^eth1", {"eth1"}) == Match::excluded);
    CHECK(judge("^eth1,eth*", {"eth1"}) == Match::excluded);
    CHECK(judge("^eth1,eth*", {"eth2"}) == Match::included_explicitly);
    CHECK(judge("^eth1,eth*", {"lo"}) == Match::unlisted);
    CHECK(judge("^10.0.0.0/8", {"eth0"}, {"10.1.2.3"}) == Match::excluded);
    CHECK(judge("eth0,^10.0.0.0/8", {"eth0"}, {"10.1.2.3"}) == Match::excluded);
}

TEST_CASE("what is off by default is turned on only explicitly", "[selector]") {
    CHECK(judge("all,docker0", {"docker0"}) == Match::included_explicitly);
    CHECK(judge("all,docker0", {"eth0"}) == Match::included_by_default);
    CHECK(judge("*", {"docker0"}) == Match::included_by_default);
    CHECK(judge("all,^eth1", {"eth1"}) == Match::excluded);
}

TEST_CASE("names that match nothing are told, excludes and globs are not", "[selector]") {
    const Strings there{"eth0", "tcp:eth0", "lo", "10.77.1.1"};
    CHECK(Selector::parse("eht0,eth0,^docker0,ib*,all").unmatched(there) == Strings{"eht0"});
    CHECK(Selector::parse("10.77.0.0/16,10.99.0.0/16").unmatched(there) == Strings{"10.99.0.0/16"});
    CHECK(Selector::parse("").unmatched(there).empty());
}

TEST_CASE("a malformed selector names the item and the fault", "[selector]") {
    CHECK(refusal("eth0,,eth1") == "selector item \"\" is empty");
    CHECK(refusal("eth0,") == "selector item \"\" is empty");
    CHECK(refusal("^") == "selector item \"^\" is empty");
    CHECK(refusal("^all") == "selector item \"^all\" would exclude everything");
    CHECK(refusal("eth0 eth1") == "selector item \"eth0 eth1\" has a blank or ^ inside: a comma missing?");
    CHECK(refusal("eth0^eth1").find("comma missing") != std::string::npos);
    for (const char* text : {"10.0.0.0/33", "fd00::/129", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/-1", "eth0/24"}) {
        CHECK(refusal(text).find("is not a network") != std::string::npos);
    }
    for (const char* text : {"10.77.0.300", "10.77", "fe80::1%eth0", "12345::"}) {
        CHECK(refusal(text).find("is not an IPv4 or IPv6 address") != std::string::npos);
    }
}

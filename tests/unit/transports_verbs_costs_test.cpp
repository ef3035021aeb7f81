#include <catch2/catch.hpp>

#include "transports/transport.hpp"
#include "transports/verbs/costs.hpp"

using namespace railmux::transports;
using verbs::choose_register_from;

TEST_CASE("memory is registered from the size on where copying it costs more", "[verbs]") {
    // 10 GB/s of copying; 20 us and 1/40 ns a byte of registering.
    const verbs::Costs usual{
        .copying_per_byte = 0.1, .registering = 20'000, .registering_per_byte = 0.025, .can_register = true};
    CHECK(choose_register_from("auto", usual) == 266'666);
    CHECK(choose_register_from("register", usual) == 1);
    CHECK(choose_register_from("copy", usual) == never_register);
    CHECK(choose_register_from("auto", {.copying_per_byte = 0.1, .can_register = true}) == 1);
    const verbs::Costs dear{.copying_per_byte = 0.1, .registering_per_byte = 0.1, .can_register = true};
    CHECK(choose_register_from("auto", dear) == never_register);
    for (const char* wanted : {"auto", "register", "copy"})
        CHECK(choose_register_from(wanted, {.copying_per_byte = 0.1, .registering = 1}) == never_register);
}

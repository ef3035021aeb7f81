#include "base/copying.hpp"

#include <catch2/catch.hpp>

TEST_CASE("copying takes time", "[base]") {
    const auto ns = railmux::base::measure_copying();
    CHECK(ns > 0.001);  // 1 TB/s: then nothing was copied
    CHECK(ns < 100);
}

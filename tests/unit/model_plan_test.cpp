// Which sizes a full probe adds where the protocol changes.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "model/plan.hpp"

namespace model = railmux::model;
using Sizes = std::vector<std::uint64_t>;

TEST_CASE("plan: sizes are denser about a change", "[model]") {
    const Sizes sizes{1, 100, 200, 300, 400};
    CHECK(model::denser(sizes, Sizes{200}) == Sizes{150, 225, 250, 275, 350});
    CHECK(model::denser(sizes, Sizes{230}) == model::denser(sizes, Sizes{200}));
    CHECK(model::denser(sizes, Sizes{400}).empty());  // of the last range: nothing was measured beyond
    CHECK(model::denser(sizes, Sizes{}).empty());
}

TEST_CASE("plan: where a change was found last, sizes are added only if two far apart surround it", "[model]") {
    CHECK(model::where_wide(Sizes{1022, 1533, 1789}, Sizes{1022}) == Sizes{1149, 1277, 1405});
    CHECK(model::where_wide(Sizes{1405, 1533, 1789}, Sizes{1405}).empty());
    CHECK(model::where_wide(Sizes{1022, 1533, 15470, 15598}, Sizes{1022, 15470}) == Sizes{1149, 1277, 1405});
    CHECK(model::where_wide(Sizes{1, 2, 3}, Sizes{1}).empty());  // nothing lies between
}

// A folder for the present test case, empty at its start and gone after its end. It is the cache folder of contexts, too.
//
// Threads: as getenv.
// Lifetime: that of the test case; see catch_main.cpp.
#pragma once

#include <cstdlib>
#include <string>

namespace railmux::test {

inline std::string scratch_folder() { return std::getenv("XDG_CACHE_HOME"); }

}  // namespace railmux::test

#include "base/copying.hpp"

#include <cstddef>
#include <vector>

#include "base/bytes.hpp"
#include "base/fastest.hpp"

namespace railmux::base {

double measure_copying() {
    constexpr std::size_t bytes = 256 * 1024;
    constexpr int rounds = 4;  // the first finds the memory cold
    std::vector<std::byte> from(bytes, std::byte{1});
    std::vector<std::byte> to(bytes);
    const auto ns = fastest_ns(rounds, [&] {
        base::copy(to.data(), from.data(), bytes);
        asm volatile("" : : "r"(to.data()) : "memory");  // or compilers see that nobody reads it
    });
    return ns / bytes;
}

}  // namespace railmux::base

// Systems to measure in tests: LogGP parameters with where they are from. Table 2 of Hoefler, Schneider and Lumsdaine
// (2009) has seven; of them only the one below could be had with its numbers. The others here are not from it.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string_view>
#include <vector>

#include <railmux/loggp.hpp>

namespace railmux::test {

/// Where tests say how well something did, beyond passing: standard output if TEST_FIGURES is set.
inline std::ostream& figures() {
    static std::ostream nowhere(nullptr);
    return std::getenv("TEST_FIGURES") != nullptr ? std::cout : nowhere;
}

struct System {
    std::string_view name;
    std::string_view source;
    LogGP truth;
};

/// Microseconds, as papers have them.
inline ProtocolRange protocol(std::uint64_t up_to, double L, Linear o, double g, double G) {
    ProtocolRange range;
    range.up_to_bytes = up_to;
    range.L = {Nanos(L * 1e3), {0}};
    range.o_s = range.o_r = o;
    range.g = Nanos(g * 1e3);
    range.G.ns = G * 1e3;
    return range;
}

inline Linear us(double fixed, double per_byte = 0) { return {Nanos(fixed * 1e3), {per_byte * 1e3}}; }

inline constexpr auto to_the_end = std::numeric_limits<std::uint64_t>::max();

inline LogGP model_of(std::vector<ProtocolRange> ranges) {
    LogGP model;
    model.ranges = std::move(ranges);
    return model;
}

inline std::vector<System> systems() {
    return {
        {"Open MPI over Myrinet/GM", "Hoefler, Schneider, Lumsdaine 2009, table 2",
         model_of(
             {protocol(32769, 10.53, us(1.27), 9.44, 0.0092), protocol(to_the_end, 10.53, us(1.27), 52.01, 0.0042)})},
        // The rows for 4096 and 1048576 bytes of the Netgauge output that comes with the CODES simulator
        // (codes-org/codes, tests/ng-mpi-tukey.dat), o made a line through its rows; L is its half round trip of one
        // byte, 7.404, less the overheads.
        {"MVAPICH over InfiniBand, Tukey", "Netgauge output in codes-org/codes",
         model_of({protocol(8192, 5.28, us(0.98, 0.000205), 1.064, 0.000339),
                   protocol(to_the_end, 5.28, us(0.98, 0.000205), 10.66, 0.000497)})},
        {"gigabit tcp", "invented", model_of({protocol(to_the_end, 18, us(2.5, 0.0003), 3, 0.0083)})},
        {"100 Mbit tcp", "invented", model_of({protocol(to_the_end, 45, us(4, 0.0004), 6, 0.082)})},
        {"100 Gbit RDMA", "invented",
         model_of({protocol(16384, 1.1, us(0.25), 0.4, 0.00009), protocol(to_the_end, 1.9, us(0.3), 1.6, 0.00009)})},
        {"shared memory", "invented", model_of({protocol(to_the_end, 0.4, us(0.15, 0.00005), 0.3, 0.00012)})},
        {"three protocols", "invented",
         model_of({protocol(8192, 4, us(0.6), 1, 0.001), protocol(32768, 6, us(0.8), 4, 0.0006),
                   protocol(to_the_end, 9, us(1.2), 14, 0.0004)})},
    };
}

}  // namespace railmux::test

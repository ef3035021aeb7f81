// Fixtures: what the contract suite runs on. A fixture is two rails that reach each other, and a way to let time pass.
// To add a transport, write a function like the ones in fixture.cpp and a line in fixtures() there.
//
// One fixture alone: contract -c "tcp". Another seed: contract --rng-seed 7.
//
// Threads: one thread.
// Lifetime: a Fixture owns its rails and all they need.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transports/transport.hpp"

namespace railmux::contract {

struct Fixture {
    std::vector<std::shared_ptr<void>> surroundings;  // outlive the rails; destroyed after them
    std::unique_ptr<transports::Rail> first;
    std::unique_ptr<transports::Rail> second;          // none where a rail reaches only itself
    std::function<bool()> idle = [] { return true; };  // nothing came: lets time pass; false if none is left

    [[nodiscard]] transports::Rail& a() const { return *first; }
    [[nodiscard]] transports::Rail& b() const { return second ? *second : *first; }
};

struct FixtureMaker {
    std::string name;
    std::function<Fixture(std::uint64_t seed)> make;
    /// Rails that take a tenth of a second to open meet a fault at one step in so many; at which, the seed says. Faults
    /// that must not be noticed come all together.
    std::uint64_t stride = 1;
};

/// The transports as they are.
[[nodiscard]] std::vector<FixtureMaker> plain_fixtures();
/// The same with both rails behind a FaultyRail.
[[nodiscard]] FixtureMaker with_faults(const FixtureMaker& plain, const std::string& plan);
/// The transports, and each of them behind faults that must not be noticed.
[[nodiscard]] const std::vector<FixtureMaker>& fixtures();

}  // namespace railmux::contract

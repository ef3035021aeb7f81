#include "model/prior.hpp"

#include <algorithm>
#include <array>

namespace railmux::model {

namespace {

struct Guess {
    std::string_view transport;
    double L, o, g;  // ns
    double copy;     // ns per byte that a CPU spends on each side
    double speed_bps;
};

// Orders of magnitude of what networks of the kind do, not measurements: what matters is that a rail is neither shunned
// nor flooded until its first messages have been acknowledged.
constexpr std::array guesses{
    Guess{"tcp", 20'000, 3'000, 3'000, 0.3, 1e9}, Guess{"verbs", 1'500, 300, 200, 0, 100e9},
    Guess{"ofi", 1'500, 400, 300, 0, 100e9},      Guess{"shm", 200, 100, 100, 0.1, 80e9},
    Guess{"self", 50, 100, 100, 0.1, 80e9},       Guess{"sim", 1'000, 100, 100, 0, 100e9},
};

}  // namespace

LogGP prior(std::string_view transport, std::uint64_t speed_bps) {
    const auto found = std::ranges::find(guesses, transport, &Guess::transport);
    const auto& guess = found == guesses.end() ? guesses.front() : *found;
    LogGP model;
    auto& range = model.ranges.front();
    range.L = {Nanos(guess.L), {0}};
    range.o_s = range.o_r = {Nanos(guess.o), {guess.copy}};
    range.g = Nanos(guess.g);
    range.G = PerByte::at(speed_bps == 0 ? guess.speed_bps : static_cast<double>(speed_bps));
    return model;
}

}  // namespace railmux::model

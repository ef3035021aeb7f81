// Soak: all processes of a job, or two that met, do everything to each other for a while, and check all of it.
//
//   member 0    terms ->                     what is done, from which seed, for how long
//   everybody   card  ->  to everybody       the keys of its memory
//   ==========  lanes (soak_lanes.hpp) to and from everybody, until the time is over for one
//   everybody   end   ->  to everybody       how much there was; what is received beyond that is a fault
//   everybody   tally ->  member 0           once all of its lanes are over
//   member 0    over  ->  everybody          nobody leaves before
//
// Threads: one, the one that uses the context, beside the watchdog's.
// Lifetime: refers to the context, which must be destroyed first if the soak was not brought to its end.
#pragma once

#include <railmux/context.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tools/soak_lanes.hpp"
#include "tools/soak_watchdog.hpp"

namespace railmux::tools {

class Soak {
public:
    struct Options {
        std::chrono::milliseconds stall{20'000};  ///< nothing ends for so long: hung
        std::function<void()> begun{};            ///< everybody has heard of everybody
        std::function<void(base::Nanoseconds elapsed, const SoakTally&)> progress{};
        std::function<bool()> enough{};  ///< true: over before its time, for everybody
    };

    /// `here` among the members: `others[i]` is member i, or i + 1 from `here` on. Member 0's terms count.
    Soak(Context& context, std::uint64_t here, std::vector<Peer> others, const SoakTerms& terms, Options options);
    ~Soak();
    Soak(const Soak&) = delete;
    Soak& operator=(const Soak&) = delete;

    /// All of it. At member 0 the tally is that of all, elsewhere that of this process. Throws Error when something hangs,
    /// after saying what was under way, or when somebody does not play by the rules.
    SoakTally run();

    [[nodiscard]] const SoakTerms& terms() const noexcept { return terms_; }
    /// Of the work itself.
    [[nodiscard]] base::Nanoseconds took() const noexcept { return took_; }

private:
    class Pair;

    void agree();
    void exchange_cards();
    /// Looks at everything until it holds.
    template <typename Holds>
    void until(Holds holds);
    bool look();
    void check_shared();
    void check_empty();
    SoakTally gather();
    [[noreturn]] void hung();
    [[nodiscard]] std::uint64_t member_of(std::size_t other) const noexcept {
        return other < here_ ? other : other + 1;
    }

    Context& context_;
    std::uint64_t here_;
    std::vector<Peer> others_;
    SoakTerms terms_;
    Options options_;
    SoakTally tally_;
    std::vector<std::byte> shared_;  // a word
    std::vector<std::unique_ptr<Pair>> pairs_;
    std::vector<MemoryRegion> regions_;  // of shared_
    base::Nanoseconds began_ = 0;
    base::Nanoseconds told_ = 0;
    base::Nanoseconds took_ = 0;
    std::uint64_t faults_gathered_ = 0;  // of ours, in the tally of all
    SoakWatchdog watchdog_;
};

}  // namespace railmux::tools

// Soaking, from one process to another: each lane keeps operations of one sort under way, and checks what comes of each.
//
// Lanes never wait: `step` starts what there is room for and takes what has ended; somebody else lets the context progress.
//
// Threads: one thread, the one that uses the context.
// Lifetime: operations under way refer to their lane, so a lane outlives the context's progress: the soak's owner destroys
// lanes only after the context, or after all of them are over.
#pragma once

#include <railmux/context.hpp>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tools/soak_plan.hpp"

namespace railmux::tools {

inline constexpr Tag soak_tag = 0x736f'616b'0000'0000;  // "soak"; messages of streams have the lowest numbers above it
inline constexpr Tag soak_terms_tag = soak_tag + 0x100;
inline constexpr Tag soak_card_tag = soak_tag + 0x101;
inline constexpr Tag soak_end_tag = soak_tag + 0x102;
inline constexpr Tag soak_round_tag = soak_tag + 0x103;
inline constexpr Tag soak_tally_tag = soak_tag + 0x104;
inline constexpr Tag soak_over_tag = soak_tag + 0x105;

/// A pair of processes as one of them sees it.
struct SoakSide {
    Context& context;
    const SoakTerms& terms;
    SoakTally& tally;
    Peer peer;
    std::uint64_t here = 0;  ///< members
    std::uint64_t there = 0;

    [[nodiscard]] std::uint64_t outgoing() const noexcept { return soak_stream(terms.seed, here, there); }
    [[nodiscard]] std::uint64_t incoming() const noexcept { return soak_stream(terms.seed, there, here); }
    /// Counts a fault and says it on standard error, as far as there are not too many.
    void fault(const std::string& text) const;
    /// An operation did not end well: throws an Error that says so. After that no stream goes on as both sides expect.
    [[noreturn]] void failed(const Status& status, const std::string& what) const;
};

/// One operation under way: notes its end from within progress.
class SoakOperation {
public:
    /// For the call that starts it. The operation must not move until it has ended.
    [[nodiscard]] Completion completion() {
        return [this](const Status& status) { status_ = status; };
    }
    void began(Request request) { request_ = std::move(request); }
    /// Its result, once.
    [[nodiscard]] std::optional<Status> take();
    [[nodiscard]] bool active() const noexcept { return request_.active(); }
    [[nodiscard]] Request& request() noexcept { return request_; }

private:
    Request request_;
    std::optional<Status> status_;
};

/// Sends the messages of the outgoing stream.
class SoakSends {
public:
    explicit SoakSends(SoakSide side) : side_(side), under_way_(side.terms.window) {}
    /// True if something ended. Nothing new begins unless `more`.
    bool step(bool more);
    [[nodiscard]] bool idle() const noexcept { return first_ == next_; }
    [[nodiscard]] std::uint64_t count() const noexcept { return next_; }
    [[nodiscard]] std::string outstanding() const;

private:
    struct Sending {
        SoakOperation operation;
        std::vector<std::byte> bytes;
        bool done = false;
    };
    void start(std::uint64_t number);

    SoakSide side_;
    std::vector<Sending> under_way_;  // message n at n % window
    std::uint64_t first_ = 0;         // oldest that has not ended
    std::uint64_t next_ = 0;
};

/// Receives those of the incoming stream, and checks each.
class SoakReceives {
public:
    explicit SoakReceives(SoakSide side) : side_(side), under_way_(side.terms.window) {}
    bool step();
    /// The other side has sent so many: what is received beyond is given back.
    void end_at(std::uint64_t count);
    [[nodiscard]] bool over() const noexcept { return end_ && first_ == *end_; }
    [[nodiscard]] std::string outstanding() const;

private:
    struct Receiving {
        SoakOperation operation;
        std::vector<std::byte> bytes;
        bool done = false;
    };
    void start(std::uint64_t number);
    void check(std::uint64_t number, const Status& status, const std::vector<std::byte>& bytes);
    [[nodiscard]] std::string wrong_with(const SoakItem& item, const Status& status,
                                         const std::vector<std::byte>& bytes) const;
    [[nodiscard]] std::string name_of(std::uint64_t number, const SoakItem& item) const;

    SoakSide side_;
    std::vector<Receiving> under_way_;
    std::uint64_t first_ = 0;
    std::uint64_t next_ = 0;
    std::optional<std::uint64_t> end_;
};

/// Where in the memory that a process opens to another one each lane works.
struct SoakPlaces {
    static constexpr std::uint64_t puts = 4;
    static constexpr std::uint64_t notified = 4;
    std::uint64_t max_bytes = 0;

    [[nodiscard]] std::uint64_t put(std::uint64_t slot) const noexcept { return slot * max_bytes; }
    [[nodiscard]] std::uint64_t note(std::uint64_t slot) const noexcept { return (puts + slot) * max_bytes; }
    [[nodiscard]] std::uint64_t word8() const noexcept { return ((puts + notified) * max_bytes + 7) / 8 * 8; }
    [[nodiscard]] std::uint64_t word4() const noexcept { return word8() + 8; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return word8() + 16; }
};

/// Puts into the other side's memory; once they are in place, gets what is there and compares.
class SoakPuts {
public:
    SoakPuts(SoakSide side, const RemoteKey& key) : side_(side), key_(key), slots_(SoakPlaces::puts) {}
    bool step(bool more);
    [[nodiscard]] bool idle() const noexcept;
    [[nodiscard]] std::string outstanding() const;

private:
    enum class Phase : std::uint8_t { idle, putting, flushing, getting };
    struct Slot {
        Phase phase = Phase::idle;
        std::uint64_t number = 0;
        SoakItem item;
        std::uint64_t offset = 0;
        bool remote = false;  // the put's own end says that it is in place
        SoakOperation operation;
        std::vector<std::byte> bytes;
    };
    void begin(Slot& slot, std::uint64_t place);
    void go_on(Slot& slot);
    void compare(const Slot& slot);

    SoakSide side_;
    RemoteKey key_;
    std::vector<Slot> slots_;
    std::uint64_t next_ = 0;
};

/// Atomics on words that nobody else touches, each of which must find what the one before left; and additions to one that
/// all processes add to.
class SoakAtomics {
public:
    SoakAtomics(SoakSide side, const SoakCard& card)
        : side_(side), card_(card), random_(soak_seed(side.outgoing(), 77)), under_way_(window) {}
    bool step(bool more);
    [[nodiscard]] bool idle() const noexcept { return first_ == next_; }
    [[nodiscard]] std::uint64_t adds() const noexcept { return adds_; }
    [[nodiscard]] std::string outstanding() const;

private:
    static constexpr std::uint64_t window = 8;
    struct Atomic {
        SoakOperation operation;
        std::uint64_t before8 = 0;
        std::uint32_t before4 = 0;
        std::uint64_t expected = 0;
        std::uint8_t width = 0;  // 0: of the shared word
        bool done = false;
    };
    void start(Atomic& atomic);
    template <typename Word>
    void start_own(Atomic& atomic, Word& before, Word& model, std::uint64_t offset);
    void check(Atomic& atomic, std::uint64_t number);

    SoakSide side_;
    SoakCard card_;
    SoakRandom random_;
    std::vector<Atomic> under_way_;
    std::uint64_t first_ = 0;
    std::uint64_t next_ = 0;
    std::uint64_t model8_ = 0;  // what our words hold when all that was started is done
    std::uint32_t model4_ = 0;
    std::uint64_t adds_ = 0;
    std::optional<std::uint64_t> shared_seen_;
};

/// Rounds of notified puts: the other side checks their bytes as soon as it is notified, and says so.
class SoakNotifies {
public:
    SoakNotifies(SoakSide side, const RemoteKey& key) : side_(side), key_(key), puts_(SoakPlaces::notified) {}
    bool step(bool more);
    [[nodiscard]] bool idle() const noexcept { return !running_; }
    [[nodiscard]] std::uint64_t rounds() const noexcept { return rounds_; }
    [[nodiscard]] std::string outstanding() const;

    /// Puts of that round of a stream.
    [[nodiscard]] static std::uint64_t puts_of(std::uint64_t stream, std::uint64_t round) noexcept;

private:
    struct Put {
        SoakOperation operation;
        std::vector<std::byte> bytes;
    };
    void begin();

    SoakSide side_;
    RemoteKey key_;
    std::vector<Put> puts_;
    SoakOperation answer_;
    bool running_ = false;
    std::uint64_t rounds_ = 0;
    std::uint64_t left_ = 0;  // puts and answer of this round that have not ended
};

/// The other side of those rounds.
class SoakNotified {
public:
    SoakNotified(SoakSide side, const MemoryRegion& region) : side_(side), region_(region) {}
    bool step();
    void end_at(std::uint64_t rounds) { end_ = rounds; }
    [[nodiscard]] bool over() const noexcept { return end_ && rounds_ == *end_ && !answer_.active(); }
    [[nodiscard]] std::string outstanding() const;

private:
    void check(std::uint64_t put, std::span<const std::byte> bytes);

    SoakSide side_;
    const MemoryRegion& region_;
    SoakOperation answer_;
    std::uint64_t rounds_ = 0;
    std::uint64_t notified_ = 0;  // puts of the rounds that were checked
    std::optional<std::uint64_t> end_;
};

}  // namespace railmux::tools

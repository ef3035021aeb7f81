#include "tools/soak_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include <railmux/error.hpp>

#include "base/bytes.hpp"

namespace railmux::tools {
namespace {

constexpr base::Nanoseconds telling = 500 * base::millisecond;
// After so many looks that brought nothing a process lets others have the processor.
constexpr int patient_looks = 200;
constexpr auto nap = std::chrono::microseconds(50);
constexpr std::chrono::milliseconds grace(5'000);

template <typename Decode>
auto receive(Context& context, Peer from, Tag tag, Decode decode) {
    std::array<std::byte, soak_control_limit> buffer;
    const auto status = context.recv(from, tag, buffer);
    return decode(std::span<const std::byte>(buffer).first(status.bytes));
}

}  // namespace

/// Everything between this process and one other.
class Soak::Pair {
public:
    Pair(const SoakSide& side)
        : side_(side),
          memory_(SoakPlaces{side.terms.max_bytes}.bytes()),
          region_(side.context.register_memory(memory_)),
          sends_(side),
          receives_(side),
          notified_(side, region_) {}

    [[nodiscard]] RemoteKey key() const { return region_.key(); }

    void begin(const SoakCard& card) {
        if (card.member != side_.there) {
            throw Error(ErrorCode::protocol,
                        fmt::format("{} says that it is member {}, and is member {}", side_.context.name(side_.peer),
                                    card.member, side_.there),
                        "let every process of the job run `railmux soak` once, and nothing else");
        }
        puts_.emplace(side_, card.own);
        atomics_.emplace(side_, card);
        notifies_.emplace(side_, card.own);
        end_in_.began(side_.context.irecv(side_.peer, soak_end_tag, end_bytes_, end_in_.completion()));
    }

    bool look(bool more) {
        const auto& terms = side_.terms;
        bool any = sends_.step(more && terms.has(SoakKind::message));
        any = receives_.step() || any;
        any = puts_->step(more && terms.has(SoakKind::put)) || any;
        any = atomics_->step(more && terms.has(SoakKind::atomic)) || any;
        any = notifies_->step(more && terms.has(SoakKind::notified)) || any;
        any = notified_.step() || any;
        if (!more && !said_end_ && sends_.idle() && puts_->idle() && atomics_->idle() && notifies_->idle()) say_end();
        if (const auto status = end_in_.take(); status) hear_end(*status);
        if (const auto status = end_out_.take(); status && !status->ok()) side_.failed(*status, "saying the end");
        return any;
    }

    [[nodiscard]] bool over() const noexcept {
        return said_end_ && !end_out_.active() && heard_ && receives_.over() && notified_.over();
    }
    [[nodiscard]] bool heard_end() const noexcept { return heard_.has_value(); }
    /// To our shared word.
    [[nodiscard]] std::uint64_t adds() const noexcept { return heard_ ? heard_->adds : 0; }

    [[nodiscard]] std::string outstanding() const {
        std::string text;
        for (const auto& line : {sends_.outstanding(), receives_.outstanding(), puts_->outstanding(),
                                 atomics_->outstanding(), notifies_->outstanding(), notified_.outstanding()}) {
            if (!line.empty()) text += line + "\n";
        }
        if (!said_end_) text += fmt::format("{} was not told of the end\n", side_.context.name(side_.peer));
        return text;
    }

private:
    void say_end() {
        said_end_ = true;
        end_said_ = encode(SoakEnd{sends_.count(), notifies_->rounds(), atomics_->adds()});
        end_out_.began(side_.context.isend(side_.peer, soak_end_tag, end_said_, end_out_.completion()));
    }
    void hear_end(const Status& status) {
        if (!status.ok()) side_.failed(status, "waiting for the end of " + side_.context.name(side_.peer));
        heard_ = decode_soak_end(std::span<const std::byte>(end_bytes_).first(status.bytes));
        receives_.end_at(heard_->messages);
        notified_.end_at(heard_->rounds);
    }

    SoakSide side_;
    std::vector<std::byte> memory_;
    MemoryRegion region_;
    SoakSends sends_;
    SoakReceives receives_;
    SoakNotified notified_;
    std::optional<SoakPuts> puts_;
    std::optional<SoakAtomics> atomics_;
    std::optional<SoakNotifies> notifies_;
    SoakOperation end_in_;
    SoakOperation end_out_;
    std::array<std::byte, soak_control_limit> end_bytes_{};
    std::vector<std::byte> end_said_;
    std::optional<SoakEnd> heard_;
    bool said_end_ = false;
};

Soak::Soak(Context& context, std::uint64_t here, std::vector<Peer> others, const SoakTerms& terms, Options options)
    : context_(context),
      here_(here),
      others_(std::move(others)),
      terms_(terms),
      options_(std::move(options)),
      shared_(sizeof(std::uint64_t)),
      watchdog_(options_.stall, grace) {}

Soak::~Soak() = default;

SoakTally Soak::run() {
    agree();
    exchange_cards();
    if (options_.begun) options_.begun();
    began_ = told_ = base::now_ns();
    until([&] { return std::all_of(pairs_.begin(), pairs_.end(), [](const auto& pair) { return pair->over(); }); });
    took_ = base::now_ns() - began_;
    check_shared();
    auto all = gather();
    check_empty();
    regions_.clear();
    if (here_ == 0) all.faults += tally_.faults - std::min(tally_.faults, faults_gathered_);
    return here_ == 0 ? all : tally_;
}

void Soak::agree() {
    if (here_ == 0) {
        for (const auto other : others_) context_.send(other, soak_terms_tag, encode(terms_));
    } else {
        terms_ = receive(context_, others_.front(), soak_terms_tag, decode_soak_terms);
    }
    watchdog_.ended();
}

void Soak::exchange_cards() {
    regions_.push_back(context_.register_memory(shared_));
    std::vector<Request> sends;
    std::vector<std::vector<std::byte>> cards;
    for (std::size_t i = 0; i < others_.size(); ++i) {
        const SoakSide side{context_, terms_, tally_, others_[i], here_, member_of(i)};
        pairs_.push_back(std::make_unique<Pair>(side));
        cards.push_back(encode(SoakCard{here_, pairs_.back()->key(), regions_.front().key()}));
        sends.push_back(context_.isend(others_[i], soak_card_tag, cards.back()));
    }
    for (std::size_t i = 0; i < others_.size(); ++i) {
        pairs_[i]->begin(receive(context_, others_[i], soak_card_tag, decode_soak_card));
        watchdog_.ended();
    }
    if (const auto code = context_.wait_all(sends); code != ErrorCode::ok) {
        throw Error(code, "the keys did not get through to all",
                    "`railmux info` on all hosts shows their rails; the lines above tell which peer was lost");
    }
}

template <typename Holds>
void Soak::until(Holds holds) {
    for (int quiet = 0; !holds();) {
        const bool moved = context_.progress();
        const bool any = look();
        if (any) watchdog_.ended();
        quiet = any || moved ? 0 : quiet + 1;
        if (watchdog_.barks()) hung();
        if (quiet > patient_looks) std::this_thread::sleep_for(nap);
    }
}

bool Soak::look() {
    const auto now = base::now_ns();
    const bool more = now - began_ < terms_.time && !(options_.enough && options_.enough()) &&
                      std::none_of(pairs_.begin(), pairs_.end(), [](const auto& pair) { return pair->heard_end(); });
    bool any = false;
    for (auto& pair : pairs_) any = pair->look(more) || any;
    if (options_.progress && now - told_ > telling) {
        told_ = now;
        options_.progress(now - began_, tally_);
    }
    return any;
}

void Soak::hung() {
    std::string text;
    for (const auto& pair : pairs_) text += pair->outstanding();
    for (const auto peer : others_) {
        if (const auto causes = context_.failure(peer); !causes.empty()) text += causes;
    }
    fmt::print(stderr, "\nrailmux: WRONG: nothing has ended for {} ms; under way were\n{}\n{}", options_.stall.count(),
               text, context_.report());
    throw Error(ErrorCode::timed_out, fmt::format("member {} hung, seed {}", here_, terms_.seed),
                "report this with the lines above");
}

/// Each addition of everybody is in it exactly once.
void Soak::check_shared() {
    std::uint64_t adds = 0;
    for (const auto& pair : pairs_) adds += pair->adds();
    const auto found = base::load<std::uint64_t>(shared_.data());
    if (found == adds) return;
    const SoakSide side{context_, terms_, tally_, Peer{}, here_, here_};
    side.fault(fmt::format("{} additions were made to a word of member {}, and it is {}", adds, here_, found));
}

/// Of everybody, at member 0; and nobody goes on before all are over.
SoakTally Soak::gather() {
    faults_gathered_ = tally_.faults;
    auto all = tally_;
    if (here_ != 0) {
        context_.send(others_.front(), soak_tally_tag, encode(tally_));
        static_cast<void>(context_.recv(others_.front(), soak_over_tag, {}));
        return all;
    }
    for (const auto other : others_) {
        all += receive(context_, other, soak_tally_tag, decode_soak_tally);
        watchdog_.ended();
    }
    for (const auto other : others_) context_.send(other, soak_over_tag, {});
    return all;
}

/// Whatever is still here came twice, or was never sent.
void Soak::check_empty() {
    const SoakSide side{context_, terms_, tally_, Peer{}, here_, here_};
    while (const auto message = context_.mprobe(any_source, TagMatch::any())) {
        side.fault(
            fmt::format("{} bytes of {} with tag {:#x} are left at member {}, which nobody sent: doubled, perhaps",
                        message->bytes(), context_.name(message->source()), message->tag(), here_));
    }
}

}  // namespace railmux::tools

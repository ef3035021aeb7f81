// Lanes of messages, and what all lanes share.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "tools/soak_lanes.hpp"

namespace railmux::tools {
namespace {

constexpr std::uint64_t most_lines = 20;  // of faults: after that the count says enough
constexpr std::byte untouched{0xee};

/// Pieces of a gather list, the last of which has what is left.
template <typename Buffer>
std::vector<Buffer> cut(Buffer whole, std::uint64_t parts) {
    std::vector<Buffer> pieces;
    for (; parts > 1; --parts) {
        pieces.push_back(whole.first(whole.size() / parts));
        whole = whole.subspan(pieces.back().size());
    }
    pieces.push_back(whole);
    return pieces;
}

}  // namespace

void SoakSide::fault(const std::string& text) const {
    if (++tally.faults == 1) tally.problem = text;
    if (tally.faults <= most_lines) fmt::print(stderr, "\nrailmux: WRONG: {}\n", text);
    if (tally.faults == most_lines) fmt::print(stderr, "railmux: more of that is only counted\n");
}

void SoakSide::failed(const Status& status, const std::string& what) const {
    throw Error(status.code,
                fmt::format("WRONG: {} ended as {} (seed {})\n{}", what, to_string(status.code), terms.seed,
                            base::trim(context.failure(peer))),
                "`railmux info` on both hosts shows their rails, and why others are off");
}

std::optional<Status> SoakOperation::take() {
    if (!status_ || !request_.active()) return std::nullopt;
    request_ = Request();
    return std::exchange(status_, std::nullopt);
}

// --- Sends -----------------------------------------------------------------------------------------------------------

void SoakSends::start(std::uint64_t number) {
    const auto item = soak_item(side_.outgoing(), SoakKind::message, number, side_.terms.max_bytes);
    auto& sending = under_way_[number % under_way_.size()];
    sending.done = false;
    sending.bytes.resize(item.bytes);
    sending.bytes.shrink_to_fit();  // whoever reads beyond it is found by tools that look for that
    write_content(sending.bytes, item.content);
    const auto gather = cut(ConstBuffer(sending.bytes), item.parts);
    sending.operation.began(
        side_.context.isend(side_.peer, soak_tag + item.tag, gather, sending.operation.completion()));
}

bool SoakSends::step(bool more) {
    bool any = false;
    for (auto number = first_; number < next_; ++number) {
        auto& sending = under_way_[number % under_way_.size()];
        const auto status = sending.operation.take();
        if (!status) continue;
        any = sending.done = true;
        if (status->ok() && status->bytes == sending.bytes.size()) continue;
        side_.failed(*status, fmt::format("sending message {} to {}, {} of {} bytes,", number,
                                          side_.context.name(side_.peer), status->bytes, sending.bytes.size()));
    }
    while (first_ < next_ && under_way_[first_ % under_way_.size()].done) ++first_;
    while (more && next_ - first_ < under_way_.size()) start(next_++);
    return any;
}

std::string SoakSends::outstanding() const {
    if (idle()) return {};
    const auto bytes = under_way_[first_ % under_way_.size()].bytes.size();
    return fmt::format("message {} to {} ({} bytes) is not sent; {} messages were started", first_,
                       side_.context.name(side_.peer), bytes, next_);
}

// --- Receives --------------------------------------------------------------------------------------------------------

void SoakReceives::start(std::uint64_t number) {
    const auto item = soak_item(side_.incoming(), SoakKind::message, number, side_.terms.max_bytes);
    auto& receiving = under_way_[number % under_way_.size()];
    receiving.done = false;
    receiving.bytes.assign(item.bytes + item.extra, untouched);
    receiving.bytes.shrink_to_fit();
    const auto scatter = cut(MutableBuffer(receiving.bytes), item.parts);
    receiving.operation.began(
        side_.context.irecv(side_.peer, soak_tag + item.tag, scatter, receiving.operation.completion()));
}

bool SoakReceives::step() {
    bool any = false;
    for (auto number = first_; number < next_; ++number) {
        auto& receiving = under_way_[number % under_way_.size()];
        const auto status = receiving.operation.take();
        if (!status) continue;
        any = receiving.done = true;
        if (end_ && number >= *end_) {
            side_.fault(fmt::format("{} sent {} messages, and another one of {} bytes arrived: doubled, perhaps",
                                    side_.context.name(side_.peer), *end_, status->message));
            continue;
        }
        check(number, *status, receiving.bytes);
    }
    while (first_ < next_ && under_way_[first_ % under_way_.size()].done) ++first_;
    while (!end_ && next_ - first_ < under_way_.size()) start(next_++);
    // The last of them may not be all posted yet.
    while (end_ && next_ < *end_ && next_ - first_ < under_way_.size()) start(next_++);
    return any;
}

void SoakReceives::end_at(std::uint64_t count) {
    end_ = count;
    for (auto number = std::max(first_, count); number < next_; ++number) {
        auto& receiving = under_way_[number % under_way_.size()];
        if (receiving.operation.active() && !side_.context.cancel(receiving.operation.request())) {
            side_.fault(
                fmt::format("{} sent {} messages, and the receive of another one has something: doubled, perhaps",
                            side_.context.name(side_.peer), count));
        }
        receiving.operation = SoakOperation();
    }
    next_ = std::max(std::min(next_, count), first_);
}

std::string SoakReceives::name_of(std::uint64_t number, const SoakItem& item) const {
    return fmt::format("message {} of {} to member {} (tag {}, {} bytes)", number, side_.context.name(side_.peer),
                       side_.here, item.tag, item.bytes);
}

void SoakReceives::check(std::uint64_t number, const Status& status, const std::vector<std::byte>& bytes) {
    const auto item = soak_item(side_.incoming(), SoakKind::message, number, side_.terms.max_bytes);
    if (!status.ok() && !status.truncated()) {
        side_.failed(status, "receiving " + name_of(number, item));
        return;
    }
    side_.tally.add(SoakKind::message, status.bytes);
    const auto wrong = wrong_with(item, status, bytes);
    if (wrong.empty()) return;
    const auto got = std::span(bytes).first(std::min<std::size_t>(status.bytes, bytes.size()));
    const auto found = whose_content(got, side_.incoming(), number, side_.terms.max_bytes);
    side_.fault(fmt::format("{}: {}{}", name_of(number, item), wrong,
                            found.empty() ? "" : "; it has " + found + ": lost, doubled or out of order"));
}

/// Empty if all is right.
std::string SoakReceives::wrong_with(const SoakItem& item, const Status& status,
                                     const std::vector<std::byte>& bytes) const {
    if (status.tag != soak_tag + item.tag) return fmt::format("it came with tag {:#x}", status.tag);
    if (status.bytes != item.bytes || status.message != item.bytes) {
        return fmt::format("{} bytes came of a message of {}", status.bytes, status.message);
    }
    if (const auto wrong = first_wrong(std::span(bytes).first(item.bytes), item.content); wrong) {
        return fmt::format("byte {} is not what was sent", *wrong);
    }
    const bool beyond = !std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(item.bytes), bytes.end(),
                                     [](std::byte byte) { return byte == untouched; });
    return beyond ? "something was written behind its end" : "";
}

std::string SoakReceives::outstanding() const {
    if (over()) return {};
    const auto item = soak_item(side_.incoming(), SoakKind::message, first_, side_.terms.max_bytes);
    if (!end_) return fmt::format("{} has not come; nor has the end of the stream", name_of(first_, item));
    return fmt::format("{} has not come, of {}", name_of(first_, item), *end_);
}

}  // namespace railmux::tools

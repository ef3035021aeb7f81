#include "tools/soak_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include <railmux/error.hpp>

#include "base/bytes.hpp"
#include "tools/pattern.hpp"

namespace railmux::tools {
namespace {

constexpr std::uint64_t tags = 4;        // enough that messages overtake each other in the order of the receives
constexpr std::uint64_t most_parts = 3;  // of a gather list
constexpr std::uint64_t most_extra = 64;
constexpr std::uint64_t neighbours = 4096;  // a message that was swapped with another one is not farther away
constexpr std::size_t text_limit = 512;
constexpr std::uint64_t odd = 0x9e3779b97f4a7c15u;  // 2^64 / golden ratio, as splitmix64 has it

void check_version(std::uint32_t version) {
    if (version == soak_version) return;
    throw Error(ErrorCode::wrong_version,
                fmt::format("the other side's soak speaks version {}, this one {}", version, soak_version),
                "use the same railmux on both sides");
}

void check_end(const base::Reader& reader, std::string_view what) {
    if (reader.done()) return;
    throw Error(ErrorCode::protocol, fmt::format("the other side sent a malformed {}", what),
                "let all processes run `railmux soak`");
}

base::Reader open_message(std::span<const std::byte> bytes) {
    base::Reader reader(bytes);
    check_version(reader.read<std::uint32_t>());
    return reader;
}

RemoteKey read_key(base::Reader& reader) {
    const auto bytes = reader.take(RemoteKey::size);
    return bytes.empty() ? RemoteKey{} : RemoteKey::from(bytes);
}

}  // namespace

std::uint64_t SoakRandom::next() noexcept {
    auto x = state_ += odd;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

std::uint64_t SoakRandom::size(std::uint64_t most) noexcept {
    const auto magnitude = std::uint64_t{1} << below(static_cast<std::uint64_t>(std::bit_width(most)) + 1);
    switch (below(8)) {
        case 0: return std::min(magnitude, most);
        case 1: return std::min(magnitude - 1, most);
        case 2: return std::min(magnitude + 1, most);
        default: return std::min(below(magnitude), most);
    }
}

std::uint64_t soak_seed(std::uint64_t seed, std::uint64_t number) noexcept {
    return SoakRandom(SoakRandom(seed).next() + number * odd).next();
}

std::string_view to_string(SoakKind kind) noexcept {
    switch (kind) {
        case SoakKind::message: return "message";
        case SoakKind::put: return "put";
        case SoakKind::get: return "get";
        case SoakKind::notified: return "notified put";
        case SoakKind::atomic: return "atomic";
    }
    return "operation";
}

void SoakTally::add(SoakKind kind, std::uint64_t bytes) noexcept {
    auto& count = done[static_cast<std::size_t>(kind)];
    ++count.operations;
    count.bytes += bytes;
}

std::uint64_t SoakTally::operations() const noexcept {
    return std::accumulate(done.begin(), done.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const Count& count) { return sum + count.operations; });
}

void SoakTally::operator+=(const SoakTally& other) {
    for (std::size_t kind = 0; kind < soak_kinds; ++kind) {
        done[kind].operations += other.done[kind].operations;
        done[kind].bytes += other.done[kind].bytes;
    }
    faults += other.faults;
    if (problem.empty()) problem = other.problem;
}

// --- On the wire -----------------------------------------------------------------------------------------------------

std::vector<std::byte> encode(const SoakTerms& terms) {
    base::Writer writer;
    writer.write(soak_version).write(terms.seed).write(terms.max_bytes).write(terms.window).write(terms.kinds);
    writer.write(static_cast<std::uint64_t>(terms.time));
    return std::move(writer).take();
}

std::vector<std::byte> encode(const SoakCard& card) {
    base::Writer writer;
    writer.write(soak_version).write(card.member).append(card.own.bytes()).append(card.shared.bytes());
    return std::move(writer).take();
}

std::vector<std::byte> encode(const SoakEnd& end) {
    base::Writer writer;
    writer.write(soak_version).write(end.messages).write(end.rounds).write(end.adds);
    return std::move(writer).take();
}

std::vector<std::byte> encode(const SoakTally& tally) {
    base::Writer writer;
    writer.write(soak_version);
    for (const auto& count : tally.done) writer.write(count.operations).write(count.bytes);
    writer.write(tally.faults).text(std::string_view(tally.problem).substr(0, text_limit));
    return std::move(writer).take();
}

SoakTerms decode_soak_terms(std::span<const std::byte> bytes) {
    auto reader = open_message(bytes);
    SoakTerms terms;
    terms.seed = reader.read<std::uint64_t>();
    terms.max_bytes = reader.read<std::uint64_t>();
    terms.window = reader.read<std::uint64_t>();
    terms.kinds = reader.read<std::uint64_t>();
    terms.time = static_cast<base::Nanoseconds>(reader.read<std::uint64_t>() & ~(std::uint64_t{1} << 63));
    check_end(reader, "order");
    return terms;
}

SoakCard decode_soak_card(std::span<const std::byte> bytes) {
    auto reader = open_message(bytes);
    SoakCard card;
    card.member = reader.read<std::uint64_t>();
    card.own = read_key(reader);
    card.shared = read_key(reader);
    check_end(reader, "card");
    return card;
}

SoakEnd decode_soak_end(std::span<const std::byte> bytes) {
    auto reader = open_message(bytes);
    SoakEnd end;
    end.messages = reader.read<std::uint64_t>();
    end.rounds = reader.read<std::uint64_t>();
    end.adds = reader.read<std::uint64_t>();
    check_end(reader, "end");
    return end;
}

SoakTally decode_soak_tally(std::span<const std::byte> bytes) {
    auto reader = open_message(bytes);
    SoakTally tally;
    for (auto& count : tally.done) {
        count.operations = reader.read<std::uint64_t>();
        count.bytes = reader.read<std::uint64_t>();
    }
    tally.faults = reader.read<std::uint64_t>();
    tally.problem = reader.text(text_limit);
    check_end(reader, "tally");
    return tally;
}

// --- Streams ---------------------------------------------------------------------------------------------------------

std::uint64_t soak_stream(std::uint64_t seed, std::uint64_t from, std::uint64_t to) noexcept {
    return soak_seed(soak_seed(seed, from), ~to);
}

SoakItem soak_item(std::uint64_t stream, SoakKind kind, std::uint64_t number, std::uint64_t most) noexcept {
    SoakRandom random(soak_seed(soak_seed(stream, static_cast<std::uint64_t>(kind)), number));
    SoakItem item;
    item.bytes = random.size(most);
    item.content = random.next();
    item.tag = random.below(tags);
    item.parts = 1 + random.below(most_parts);
    item.extra = random.below(2) == 0 ? 0 : random.below(most_extra);
    return item;
}

void write_content(std::span<std::byte> bytes, std::uint64_t content) noexcept {
    fill(bytes, content);
    stamp(bytes, content, 0);
}

std::optional<std::size_t> first_wrong(std::span<const std::byte> bytes, std::uint64_t content) noexcept {
    return first_difference(bytes, content, 0);
}

std::string whose_content(std::span<const std::byte> bytes, std::uint64_t stream, std::uint64_t number,
                          std::uint64_t most) {
    constexpr std::size_t telling = 16;  // shorter ones resemble each other by chance
    if (bytes.size() < telling) return {};
    const auto first = number > neighbours ? number - neighbours : 0;
    for (auto other = first; other < number + neighbours; ++other) {
        const auto item = soak_item(stream, SoakKind::message, other, most);
        // By its beginning alone: of another length it is cut, or followed by something else.
        if (other == number || item.bytes < telling) continue;
        std::array<std::byte, 8> head;
        stamp(head, item.content, 0);
        if (std::equal(head.begin(), head.end(), bytes.begin())) return fmt::format("the content of message {}", other);
    }
    return {};
}

}  // namespace railmux::tools

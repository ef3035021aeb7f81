// Byte order and bounds: reading and writing wire integers (little endian) without trusting a length.
//
// Threads: values; one thread at a time per object.
// Lifetime: a Reader or Writer only views the bytes it is given.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace railmux::base {

static_assert(std::endian::native == std::endian::little, "store/load assume a little-endian host");

template <std::unsigned_integral T>
[[nodiscard]] inline T load(const std::byte* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template <std::unsigned_integral T>
inline void store(std::byte* to, T value) noexcept {
    std::memcpy(to, &value, sizeof value);
}

/// Copies up to 64 bytes, without a call: by moves that may overlap.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t count) noexcept {
    const auto ends = [&]<std::size_t width>(std::integral_constant<std::size_t, width>) {
        std::array<std::byte, width> first;
        std::array<std::byte, width> last;
        std::memcpy(first.data(), from, width);
        std::memcpy(last.data(), from + count - width, width);
        std::memcpy(to, first.data(), width);
        std::memcpy(to + count - width, last.data(), width);
    };
    if (count >= 32) return ends(std::integral_constant<std::size_t, 32>{});
    if (count >= 16) return ends(std::integral_constant<std::size_t, 16>{});
    if (count >= 8) return ends(std::integral_constant<std::size_t, 8>{});
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i];
}

/// Copies what is long. Some processors (AMD, Zen 3) take 16 to 28 times as long for "rep movsb", which memcpy uses from 2 or 4
/// KiB on, where the target is a little further behind the beginning of a page than the source (1 to 31 bytes): as a message is
/// behind a header. Then, and up to 63 to be safe, it is done in parts, so short that they are moved in other ways.
inline void copy_long(std::byte* to, const std::byte* from, std::size_t count) noexcept {
    constexpr std::size_t part = 1024, page = 4096, near = 64;
    const auto ahead = (reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from)) % page;
    while (count > part && ahead > 0 && ahead < near) {
        std::size_t bytes = part;
        asm("" : "+r"(bytes));  // of a length that they know compilers make that instruction, too
        std::memcpy(to, from, bytes);
        to += part;
        from += part;
        count -= part;
    }
    std::memcpy(to, from, count);
}

/// As memcpy, also from nowhere; most messages are short.
inline void copy(std::byte* to, const std::byte* from, std::size_t count) noexcept {
    if (count > 64) {
        copy_long(to, from, count);
    } else {
        copy_short(to, from, count);
    }
}

/// As copy, where the two places may overlap.
inline void move_bytes(std::byte* to, const std::byte* from, std::size_t count) noexcept {
    const auto ahead = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from);
    if (ahead >= count && 0 - ahead >= count) {
        copy(to, from, count);
    } else {
        std::memmove(to, from, count);
    }
}

/// Reads fields in order; after a read past the end every further read gives zero and ok() is false, so that a parser
/// checks once, at its end.
class Reader {
public:
    explicit Reader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

    template <std::unsigned_integral T>
    [[nodiscard]] T read() noexcept {
        const auto field = take(sizeof(T));
        return field.empty() ? T{0} : load<T>(field.data());
    }
    [[nodiscard]] std::span<const std::byte> take(std::size_t count) noexcept {
        if (count > bytes_.size() - at_) {
            ok_ = false;
            at_ = bytes_.size();
            return {};
        }
        const auto part = bytes_.subspan(at_, count);
        at_ += count;
        return part;
    }
    /// A string with a length byte pair in front, refused when longer than `limit`.
    [[nodiscard]] std::string text(std::size_t limit) {
        const std::size_t count = read<std::uint16_t>();
        if (count > limit) {
            ok_ = false;
            return {};
        }
        const auto part = take(count);
        return {reinterpret_cast<const char*>(part.data()), part.size()};
    }
    [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
    [[nodiscard]] bool ok() const noexcept { return ok_; }
    [[nodiscard]] bool done() const noexcept { return ok_ && at_ == bytes_.size(); }

private:
    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    bool ok_ = true;
};

/// Appends fields to a growing vector.
class Writer {
public:
    template <std::unsigned_integral T>
    Writer& write(T value) {
        std::array<std::byte, sizeof value> field;
        store(field.data(), value);
        return append(field);
    }
    Writer& append(std::span<const std::byte> part) {
        bytes_.insert(bytes_.end(), part.begin(), part.end());
        return *this;
    }
    Writer& text(std::string_view value) {
        write(static_cast<std::uint16_t>(value.size()));
        return append(std::as_bytes(std::span(value)));
    }
    [[nodiscard]] std::vector<std::byte> take() && { return std::move(bytes_); }
    [[nodiscard]] std::span<const std::byte> view() const noexcept { return bytes_; }

private:
    std::vector<std::byte> bytes_;
};

}  // namespace railmux::base

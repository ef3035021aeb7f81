#include "base/crc32c.hpp"

#include <array>

#include "base/bytes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define RAILMUX_FOLD_TARGET [[gnu::target("avx512f,vpclmulqdq,pclmul,sse4.2")]]
#define RAILMUX_CRC_TARGET [[gnu::target("sse4.2")]]
#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#define RAILMUX_CRC_TARGET
#endif

namespace railmux::base {
namespace {

using Table = std::array<std::uint32_t, 256>;

constexpr std::uint32_t polynomial = 0x82f63b78;  // reflected: the lowest bit is the highest power

/// What a byte leaves of a remainder when `behind` other bytes follow it.
constexpr std::array<Table, 8> make_tables() {
    std::array<Table, 8> tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ ((rest & 1) != 0 ? polynomial : 0);
        tables[0][byte] = rest;
    }
    for (std::size_t behind = 1; behind < tables.size(); ++behind) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const auto rest = tables[behind - 1][byte];
            tables[behind][byte] = rest >> 8 ^ tables[0][rest & 0xff];
        }
    }
    return tables;
}
constexpr auto tables = make_tables();

constexpr std::uint32_t add_byte(std::uint32_t rest, std::byte byte) noexcept {
    return rest >> 8 ^ tables[0][(rest ^ static_cast<std::uint32_t>(byte)) & 0xff];
}

std::uint32_t by_table(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
    std::uint32_t rest = ~before;
    while (bytes.size() >= 8) {
        const auto word = load<std::uint64_t>(bytes.data()) ^ rest;
        rest = 0;
        for (std::size_t i = 0; i < 8; ++i) rest ^= tables[7 - i][word >> 8 * i & 0xff];
        bytes = bytes.subspan(8);
    }
    for (const auto byte : bytes) rest = add_byte(rest, byte);
    return ~rest;
}

#if defined(RAILMUX_CRC_TARGET)

// The instruction takes a word each cycle and gives its result three cycles later: so three parts of a large buffer are summed
// side by side, and then put together, which takes some ten cycles. Parts of 1 KiB make that little, and 3 KiB worth it.
constexpr std::size_t part = 1024;

/// What a remainder, by its four bytes, becomes when `part` bytes of zeros follow: remainders are linear, so that of two parts
/// is what the first one's becomes, and the second one's, added.
constexpr std::array<Table, 4> make_shift() {
    std::array<std::uint32_t, 32> of_bit{};
    for (std::size_t bit = 0; bit < of_bit.size(); ++bit) {
        std::uint32_t rest = std::uint32_t{1} << bit;
        for (std::size_t i = 0; i < part; ++i) rest = add_byte(rest, std::byte{0});
        of_bit[bit] = rest;
    }
    std::array<Table, 4> shift{};
    for (std::size_t place = 0; place < shift.size(); ++place) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            for (std::size_t bit = 0; bit < 8; ++bit)
                shift[place][byte] ^= (byte >> bit & 1) != 0 ? of_bit[8 * place + bit] : 0;
        }
    }
    return shift;
}
constexpr auto shift = make_shift();

std::uint32_t shifted(std::uint32_t rest) noexcept {
    return shift[0][rest & 0xff] ^ shift[1][rest >> 8 & 0xff] ^ shift[2][rest >> 16 & 0xff] ^ shift[3][rest >> 24];
}

#if defined(__x86_64__)
RAILMUX_CRC_TARGET inline std::uint32_t add_word(std::uint32_t rest, std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(__builtin_ia32_crc32di(rest, word));
}
bool has_instruction() noexcept { return __builtin_cpu_supports("sse4.2") != 0; }
#else
RAILMUX_CRC_TARGET inline std::uint32_t add_word(std::uint32_t rest, std::uint64_t word) noexcept {
    asm(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(rest) : "r"(word));  // compilers name it differently
    return rest;
}
bool has_instruction() noexcept { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
#endif

RAILMUX_CRC_TARGET std::uint32_t by_instruction(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
    std::uint32_t rest = ~before;
    const auto* at = bytes.data();
    auto left = bytes.size();
    for (; left >= 3 * part; at += 3 * part, left -= 3 * part) {
        std::uint32_t second = 0;
        std::uint32_t third = 0;
        for (std::size_t i = 0; i < part; i += 8) {
            rest = add_word(rest, load<std::uint64_t>(at + i));
            second = add_word(second, load<std::uint64_t>(at + part + i));
            third = add_word(third, load<std::uint64_t>(at + 2 * part + i));
        }
        rest = shifted(shifted(rest) ^ second) ^ third;
    }
    for (; left >= 8; at += 8, left -= 8) rest = add_word(rest, load<std::uint64_t>(at));
    for (; left > 0; ++at, --left) rest = add_byte(rest, *at);
    return ~rest;
}

#if defined(__x86_64__)

// Folding (Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ", 2009): what stands `bits` before other
// bytes is as good as x^bits times as much there, modulo the polynomial, of which its two halves of 64 bits take a product
// each. Four registers of 64 bytes side by side hide how long that takes. Small buffers are done sooner by the instruction.
constexpr std::size_t least_folded = 1024;
constexpr std::size_t fold_bytes = 64;

/// x^power modulo the polynomial.
constexpr std::uint32_t remainder_of(unsigned power) {
    std::uint32_t rest = 0x80000000;
    for (; power > 0; --power) rest = rest >> 1 ^ ((rest & 1) != 0 ? polynomial : 0);
    return rest;
}
/// By which the halves are multiplied: 64 bits lie between the two, 32 are the remainder's, and reflected products end one low.
struct Factors {
    long long first = 0;
    long long second = 0;
};
constexpr Factors factors(unsigned bits) { return {remainder_of(bits + 31), remainder_of(bits - 33)}; }

RAILMUX_FOLD_TARGET inline __m512i fold(__m512i from, __m512i by, __m512i onto) noexcept {
    const auto low = _mm512_clmulepi64_epi128(from, by, 0x00);
    const auto high = _mm512_clmulepi64_epi128(from, by, 0x11);
    return _mm512_ternarylogic_epi64(low, high, onto, 0x96);  // all three added
}
RAILMUX_FOLD_TARGET inline __m512i of_factors(Factors by) noexcept {
    return _mm512_set_epi64(by.second, by.first, by.second, by.first, by.second, by.first, by.second, by.first);
}
RAILMUX_FOLD_TARGET inline __m512i fold_load(const std::byte* from) noexcept { return _mm512_loadu_si512(from); }

RAILMUX_FOLD_TARGET std::uint32_t by_folding(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
    if (bytes.size() < least_folded) return by_instruction(bytes, before);
    constexpr auto step = 4 * fold_bytes;
    constexpr auto far = factors(8 * step), near = factors(8 * fold_bytes), next = factors(128);
    const auto* at = bytes.data();
    auto left = bytes.size();
    __m512i sums[4];  // NOLINT: as a template's argument the type would lose its alignment
    for (std::size_t i = 0; i < 4; ++i) sums[i] = fold_load(at + i * fold_bytes);
    sums[0] = _mm512_xor_si512(sums[0], _mm512_set_epi64(0, 0, 0, 0, 0, 0, 0, ~before));
    const auto by_far = of_factors(far);
    for (at += step, left -= step; left >= step; at += step, left -= step) {
        for (std::size_t i = 0; i < 4; ++i) sums[i] = fold(sums[i], by_far, fold_load(at + i * fold_bytes));
    }
    const auto by_near = of_factors(near);
    auto sum = sums[0];
    for (std::size_t i = 1; i < 4; ++i) sum = fold(sum, by_near, sums[i]);
    alignas(fold_bytes) std::array<std::uint64_t, 8> words;
    _mm512_store_si512(words.data(), sum);
    auto last = _mm_set_epi64x(static_cast<long long>(words[1]), static_cast<long long>(words[0]));
    const auto by_next = _mm_set_epi64x(next.second, next.first);
    for (std::size_t i = 2; i < words.size(); i += 2) {
        const auto onto = _mm_set_epi64x(static_cast<long long>(words[i + 1]), static_cast<long long>(words[i]));
        const auto low = _mm_clmulepi64_si128(last, by_next, 0x00);
        const auto high = _mm_clmulepi64_si128(last, by_next, 0x11);
        last = _mm_xor_si128(_mm_xor_si128(low, high), onto);
    }
    alignas(16) std::array<std::uint64_t, 2> both;
    _mm_store_si128(reinterpret_cast<__m128i*>(both.data()), last);
    const auto rest = add_word(add_word(0, both[0]), both[1]);
    return by_instruction({at, left}, ~rest);
}

constexpr std::array<Crc32cWay, 3> ways{
    {{"table", by_table}, {"instruction", by_instruction}, {"folding", by_folding}}};
bool has_folding() noexcept {
    return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
}

#else

constexpr std::array<Crc32cWay, 2> ways{{{"table", by_table}, {"instruction", by_instruction}}};
bool has_folding() noexcept { return false; }

#endif

#else

constexpr std::array<Crc32cWay, 1> ways{{{"table", by_table}}};
bool has_instruction() noexcept { return false; }
bool has_folding() noexcept { return false; }

#endif

const auto fastest = crc32c_ways().back().checksum;

}  // namespace

std::span<const Crc32cWay> crc32c_ways() noexcept {
    return std::span(ways).first(!has_instruction() ? 1 : has_folding() ? 3 : 2);
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept { return fastest(bytes, before); }

}  // namespace railmux::base

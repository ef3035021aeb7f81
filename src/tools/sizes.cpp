#include "tools/sizes.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/text.hpp"
#include "base/values.hpp"
#include "tools/usage.hpp"

namespace railmux::tools {
namespace {

// More cannot be one message's buffer on today's machines, and doubling stays far from overflow.
constexpr std::uint64_t largest = std::uint64_t{1} << 40;

std::optional<std::uint64_t> size_of(std::string_view text) {
    const auto size = base::parse_bytes(text);
    return size && *size <= largest ? size : std::nullopt;
}

std::uint64_t size_in(std::string_view item, std::string_view text) {
    const auto size = size_of(text);
    if (!size) {
        throw UsageError(fmt::format("--sizes: \"{}\" is not a size or a range of sizes", item),
                         "write sizes such as 8,64,4K or a doubling range such as 1-1M, each at most 1T");
    }
    return *size;
}

}  // namespace

std::uint64_t parse_size(std::string_view option, std::string_view text) {
    const auto size = size_of(text);
    if (!size) {
        throw UsageError(fmt::format("{}: \"{}\" is not a size", option, text),
                         "write a size such as 65536, 64K or 1M (K is 1024), at most 1T");
    }
    return *size;
}

std::vector<std::uint64_t> parse_sizes(std::string_view text) {
    std::vector<std::uint64_t> sizes;
    for (const auto item : base::split(text, ',')) {
        const auto dash = item.find('-');
        const auto first = size_in(item, item.substr(0, dash));
        const auto last = dash == item.npos ? first : size_in(item, item.substr(dash + 1));
        if (last < first) {
            throw UsageError(fmt::format("--sizes: \"{}\" runs backwards", item), "write the smaller size first");
        }
        for (auto size = first; size < last; size = size == 0 ? 1 : 2 * size) sizes.push_back(size);
        sizes.push_back(last);
    }
    return sizes;
}

}  // namespace railmux::tools

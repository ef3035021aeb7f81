#include "base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

namespace railmux::base {
namespace {

char lower(char c) noexcept { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Optimal string alignment distance, three rolling rows.
std::size_t edits(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (same ? 0 : 1)});
            const bool swapped =
                i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]);
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[b.size()];
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
    constexpr std::string_view blank = " \t\r\n";
    const auto first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
    std::vector<std::string_view> parts;
    for (;;) {
        const auto end = text.find(separator);
        parts.push_back(trim(text.substr(0, end)));
        if (end == std::string_view::npos) return parts;
        text.remove_prefix(end + 1);
    }
}

std::string nearest(std::string_view word, std::span<const std::string> known) {
    const std::string* best = nullptr;
    std::size_t best_edits = 0;
    for (const auto& candidate : known) {
        const auto distance = edits(word, candidate);
        if (distance * 3 > std::max(candidate.size(), word.size())) continue;
        if (best == nullptr || distance < best_edits) {
            best = &candidate;
            best_edits = distance;
        }
    }
    return best == nullptr ? std::string{} : *best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> known) {
    const auto guess = nearest(word, known);
    return guess.empty() ? std::string{} : " (did you mean \"" + guess + "\"?)";
}

std::string join(std::span<const std::string> words, std::string_view separator) {
    std::string all;
    for (const auto& word : words) {
        if (!all.empty()) all += separator;
        all += word;
    }
    return all;
}

}  // namespace railmux::base

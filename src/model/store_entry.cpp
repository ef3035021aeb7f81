#include "model/store_entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "base/crypto.hpp"

namespace railmux::model {

namespace {

constexpr std::string_view format_line = "railmux-model 1\n";
constexpr std::string_view checksum_word = "checksum ";
constexpr std::string_view suffix = ".model";
constexpr std::size_t digest_digits = 32;

/// 128 bits are enough against chance and against damage.
std::string digest(std::string_view text) {
    constexpr std::string_view purpose = "railmux model store";
    const auto whole = base::hmac_sha256(std::as_bytes(std::span(purpose)), {std::as_bytes(std::span(text))});
    return base::to_hex(std::span(whole).first(digest_digits / 2));
}

std::string head_of(const StoreKey& key, std::string_view version) {
    return fmt::format("{}version {}\nlocal {:016x}\nremote {:016x}\n", format_line, version, key.local, key.remote);
}

Error refused(const std::string& why) { return {ErrorCode::invalid_argument, why}; }

/// What stands before a last line that is the checksum of it; nothing when that is wrong.
std::optional<std::string_view> undamaged(std::string_view text) {
    constexpr auto tail = checksum_word.size() + digest_digits + 1;
    if (text.size() <= tail || text.back() != '\n') return std::nullopt;
    const auto body = text.substr(0, text.size() - tail);
    const auto line = text.substr(body.size());
    if (body.back() != '\n' || !line.starts_with(checksum_word)) return std::nullopt;
    if (line.substr(checksum_word.size(), digest_digits) != digest(body)) return std::nullopt;
    return body;
}

}  // namespace

std::string with_checksum(std::string body) {
    const auto sum = digest(body);
    return std::move(body) + std::string(checksum_word) + sum + "\n";
}

std::string StoreEntry::text() const { return with_checksum(head_of(key, version) + to_text(model)); }

base::Result<StoreEntry> StoreEntry::parse(std::string_view text, const StoreKey& key, std::string_view version) {
    if (text.size() > max_bytes) return refused("it is too long");
    const auto body = undamaged(text);
    if (!body) return refused("it is damaged, or no model at all");
    if (!body->starts_with(format_line)) return refused("it has another format");
    const auto head = head_of(key, version);
    if (!body->starts_with(head)) return refused("it is of other rails, or of another version of railmux");
    try {
        StoreEntry entry{key, std::string(version), loggp_from_text(body->substr(head.size()))};
        if (entry.text() != text) return refused("it is not as railmux writes it");
        return entry;
    } catch (const Error& error) {
        return refused(error.what());
    }
}

std::string StoreEntry::file_name(const StoreKey& key, std::string_view version) {
    return digest(head_of(key, version)) + std::string(suffix);
}

bool StoreEntry::is_file_name(std::string_view name) noexcept {
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return name.size() == digest_digits + suffix.size() && name.ends_with(suffix) &&
           std::all_of(name.begin(), name.begin() + digest_digits, is_digit);
}

}  // namespace railmux::model

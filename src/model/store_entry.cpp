#include "model/store_entry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
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

std::string key_lines(const StoreKey& key, std::string_view version) {
    return fmt::format("version {}\nlocal {:016x}\nremote {:016x}\n", version, key.local, key.remote);
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

/// The lines of an entry, taken off its front one after the other.
class Lines {
public:
    explicit Lines(std::string_view text) : left_(text) {}

    /// What follows the word and a blank on the next line; throws Error(invalid_argument) when that is another one.
    std::string_view value(std::string_view word) {
        const auto end = left_.find('\n');
        const auto line = left_.substr(0, end);
        if (end == left_.npos || !line.starts_with(word) || line.substr(word.size(), 1) != " ") {
            throw refused(fmt::format("it has no {} where it should", word));
        }
        left_.remove_prefix(end + 1);
        return line.substr(word.size() + 1);
    }
    std::uint64_t identity(std::string_view word) {
        const auto digits = value(word);
        std::uint64_t number = 0;
        const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
        if (error != std::errc{} || end != digits.data() + digits.size()) {
            throw refused(fmt::format("its {} is not a number", word));
        }
        return number;
    }
    std::string name(std::string_view word) {
        const auto text = value(word);
        if (StoreEntry::for_people(text) != text) throw refused(fmt::format("its {} is no name", word));
        return std::string(text);
    }
    [[nodiscard]] std::string_view rest() const noexcept { return left_; }

private:
    std::string_view left_;
};

}  // namespace

std::string with_checksum(std::string body) {
    const auto sum = digest(body);
    return std::move(body) + std::string(checksum_word) + sum + "\n";
}

std::string StoreEntry::text() const {
    return with_checksum(fmt::format("{}{}link {}\n{}", format_line, key_lines(key, version), link, to_text(model)));
}

base::Result<StoreEntry> StoreEntry::parse(std::string_view text) try {
    if (text.size() > max_bytes) return refused("it is too long");
    const auto body = undamaged(text);
    if (!body) return refused("it is damaged, or no model at all");
    if (!body->starts_with(format_line)) return refused("it has another format");
    Lines lines(body->substr(format_line.size()));
    StoreEntry entry;
    entry.version = lines.name("version");
    entry.key.local = lines.identity("local");
    entry.key.remote = lines.identity("remote");
    entry.link = lines.name("link");
    entry.model = loggp_from_text(lines.rest());
    if (entry.text() != text) return refused("it is not as railmux writes it");
    return entry;
} catch (const Error& error) {
    return error;
}

std::string StoreEntry::file_name(const StoreKey& key, std::string_view version) {
    return digest(key_lines(key, version)) + std::string(suffix);
}

bool StoreEntry::is_file_name(std::string_view name) noexcept {
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return name.size() == digest_digits + suffix.size() && name.ends_with(suffix) &&
           std::all_of(name.begin(), name.begin() + digest_digits, is_digit);
}

std::string StoreEntry::link_from(std::string_view host, std::string_view rail, std::string_view to) {
    return fmt::format("{} {} to {}", host, rail, to);
}

std::string StoreEntry::for_people(std::string_view text) {
    std::string name(text.substr(0, max_name));
    std::ranges::replace_if(
        name, [](char c) { return c < ' ' || c > '~'; }, '?');
    return name;
}

}  // namespace railmux::model

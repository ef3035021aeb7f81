#include "model/store.hpp"

#include <algorithm>
#include <vector>

#include <railmux/version.hpp>

#include "base/environment.hpp"

namespace railmux::model {

namespace {
// Looking through the folder takes a millisecond when it is full.
constexpr std::uint32_t keeps_between_prunes = 64;
}  // namespace

std::optional<StoreOptions> StoreOptions::read(const Config& config) {
    StoreOptions options{.folder = config.text("probe.store"), .version = RAILMUX_VERSION};
    if (options.folder.empty() || options.folder == "off") return std::nullopt;
    if (options.folder == "auto") {
        const auto cache = base::cache_folder();
        if (!cache) return std::nullopt;
        options.folder = *cache + "/railmux";
    } else if (!options.folder.starts_with('/')) {
        throw Error(ErrorCode::invalid_config, fmt::format("probe.store: \"{}\" is not an absolute path", options.folder),
                    "name a folder from the root on, or say auto or off");
    } else {
        options.named = true;
    }
    return options;
}

Store::Store(StoreOptions options, base::Logger& log) : options_(std::move(options)), log_(log) {}

std::optional<LogGP> Store::find(const StoreKey& key) noexcept try {
    const auto folder = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::empty);
    if (!folder) {
        unusable(folder.error());
        return std::nullopt;
    }
    const auto name = StoreEntry::file_name(key, options_.version);
    const auto text = folder.value().read(name, StoreEntry::max_bytes);
    if (!text) {
        refuse(folder.value(), name, text.error());
        return std::nullopt;
    }
    if (!text.value()) return std::nullopt;
    auto entry = StoreEntry::parse(*text.value(), key, options_.version);
    if (!entry) {
        const auto& why = entry.error();
        refuse(folder.value(), name, {why.code(), fmt::format("{}/{}: {}", options_.folder, name, why.what())});
        return std::nullopt;
    }
    return std::move(entry.value().model);
} catch (const std::exception& error) {
    unusable({ErrorCode::system, error.what()});
    return std::nullopt;
}

void Store::keep(const StoreKey& key, const LogGP& model) noexcept try {
    const auto folder = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::make);
    if (!folder) return unusable(folder.error());
    const StoreEntry entry{key, options_.version, model};
    const auto written = folder.value().replace(StoreEntry::file_name(key, options_.version), entry.text());
    if (!written) return unusable(written.error());
    if (kept_++ % keeps_between_prunes == 0) prune(folder.value(), written.value());
} catch (const std::exception& error) {
    unusable({ErrorCode::system, error.what()});
}

void Store::confirm(const StoreKey& key) noexcept try {
    const auto folder = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::empty);
    if (folder) folder.value().renew(StoreEntry::file_name(key, options_.version));
} catch (const std::exception& error) {
    unusable({ErrorCode::system, error.what()});
}

/// Old ones go, and the oldest of too many.
void Store::prune(const base::PrivateFolder& folder, base::Nanoseconds now) const {
    folder.sweep(now);
    auto entries = folder.list();
    std::erase_if(entries, [](const auto& e) { return !StoreEntry::is_file_name(e.name); });
    std::ranges::sort(entries, std::greater<>{}, &base::PrivateFolder::Entry::written);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i >= options_.max_entries || now - entries[i].written > options_.max_age) folder.remove(entries[i].name);
    }
}

/// Once for each file, and in most cases for all processes: the file goes.
void Store::refuse(const base::PrivateFolder& folder, const std::string& name, const Error& error) {
    if (!refused_.insert(name).second) return;
    log_.warning("stored model {}; it is not used, and the next measurement of this link replaces it", error.what());
    if (error.code() != ErrorCode::system) folder.remove(name);
}

void Store::unusable(const Error& error) {
    if (std::exchange(reported_, true)) return;
    constexpr std::string_view text =
        "models of links are not kept for later runs: {}; name another folder in RAILMUX_PROBE_STORE, or off";
    if (options_.named) {
        log_.warning(text, error.what());
    } else {
        log_.info(text, error.what());
    }
}

Store::Content Store::content() const {
    const auto folder = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::empty).take();
    Content content;
    for (const auto& entry : folder.list()) {
        if (!StoreEntry::is_file_name(entry.name)) continue;
        ++content.models;
        content.bytes += entry.bytes;
    }
    return content;
}

std::size_t Store::clear() {
    const auto folder = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::empty).take();
    std::size_t removed = 0;
    for (const auto& entry : folder.list()) {
        if (StoreEntry::is_file_name(entry.name) && folder.remove(entry.name)) ++removed;
    }
    return removed;
}

}  // namespace railmux::model

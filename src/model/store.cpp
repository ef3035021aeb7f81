#include "model/store.hpp"

#include <algorithm>
#include <vector>

#include <railmux/version.hpp>

#include "base/environment.hpp"

namespace railmux::model {

std::optional<StoreOptions> StoreOptions::read(const Config& config) {
    StoreOptions options{.folder = config.text("probe.store"), .version = RAILMUX_VERSION};
    if (options.folder.empty()) {
        const auto cache = base::cache_folder();
        if (!cache) return std::nullopt;
        options.folder = *cache + "/railmux";
    } else if (!options.folder.starts_with('/')) {
        throw Error(ErrorCode::invalid_config,
                    fmt::format("probe.store: \"{}\" is not an absolute path", options.folder),
                    "name a folder from the root on");
    } else {
        options.named = true;
    }
    return options;
}

Store::Store(StoreOptions options, base::Logger& log) : options_(std::move(options)), log_(log) {}

Store::~Store() {
    if (newest_ > 0) prune();  // only now: looking through a full folder takes milliseconds
}

std::optional<LogGP> Store::find(const StoreKey& key) noexcept {
    auto entry = read(key);
    if (!entry) return std::nullopt;
    return std::move(entry->model);
}

std::optional<std::string> Store::link_of(const StoreKey& key) noexcept {
    auto entry = read(key);
    if (!entry) return std::nullopt;
    return std::move(entry->link);
}

std::optional<StoreEntry> Store::read(const StoreKey& key) noexcept try {
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
    auto entry = StoreEntry::parse(*text.value());
    if (entry && (entry.value().key != key || entry.value().version != options_.version)) {
        entry = Error(ErrorCode::invalid_argument, "it is of other rails, or of another version of railmux");
    }
    if (!entry) {
        const auto& why = entry.error();
        refuse(folder.value(), name, {why.code(), fmt::format("{}/{}: {}", options_.folder, name, why.what())});
        return std::nullopt;
    }
    return std::move(entry).take();
} catch (const std::exception& error) {
    unusable({ErrorCode::system, error.what()});
    return std::nullopt;
}

void Store::keep(const StoreKey& key, std::string_view link, const LogGP& model) noexcept try {
    const auto folder = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::make);
    if (!folder) return unusable(folder.error());
    const StoreEntry entry{key, options_.version, StoreEntry::for_people(link), model};
    const auto written = folder.value().replace(StoreEntry::file_name(key, options_.version), entry.text());
    if (!written) return unusable(written.error());
    newest_ = written.value();
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
void Store::prune() noexcept try {
    const auto opened = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::empty);
    if (!opened) return;
    const auto& folder = opened.value();
    folder.sweep(newest_);
    auto entries = folder.list();
    std::erase_if(entries, [](const auto& e) { return !StoreEntry::is_file_name(e.name); });
    std::ranges::sort(entries, std::greater<>{}, &base::PrivateFolder::Entry::written);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i >= options_.max_entries || newest_ - entries[i].written > options_.max_age)
            folder.remove(entries[i].name);
    }
} catch (const std::exception& error) {
    unusable({ErrorCode::system, error.what()});
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
        "models of links are not kept for later runs: {}; name another folder in RAILMUX_PROBE_STORE, or do without by "
        "RAILMUX_PROBE=shared";
    if (options_.named) {
        log_.warning(text, error.what());
    } else {
        log_.info(text, error.what());
    }
}

Store::Content Store::content() const {
    const auto folder = base::PrivateFolder::open(options_.folder, base::PrivateFolder::Missing::empty).take();
    Content content;
    for (const auto& file : folder.list()) {
        if (!StoreEntry::is_file_name(file.name)) continue;
        const auto text = folder.read(file.name, StoreEntry::max_bytes);
        if (text && !text.value()) continue;  // gone meanwhile
        auto entry = text ? StoreEntry::parse(*text.value()) : text.error();
        if (entry) {
            content.models.push_back({std::move(entry).take(), file.written});
        } else {
            ++content.refused;
        }
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

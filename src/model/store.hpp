// Store: models measured in earlier runs, one small file for each pair of rails. What it finds is a reason to verify, not to
// believe: a file that is damaged, of another version or not this user's own is said so once and made anew by the next
// measurement.
//
// The one part of the model that touches the system. Nothing here waits for another process, and nothing fails because of it:
// without a store links are measured as if there never had been one.
//
// Threads: one at a time per object; any number of processes on one folder.
// Lifetime: refers to the log.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <railmux/config.hpp>
#include <railmux/loggp.hpp>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/private_folder.hpp"
#include "model/store_entry.hpp"

namespace railmux::model {

struct StoreOptions {
    std::string folder;  // absolute
    bool named = false;  // by the user, who wants to know when it cannot be used
    std::string version;
    std::size_t max_entries = 1024;  // 0.5 KB each: those of a job on a thousand hosts
    base::Nanoseconds max_age = 90 * 86'400 * base::second;

    /// What probe.store and the environment say; nothing when there is none. Throws Error(invalid_config) on a relative path.
    [[nodiscard]] static std::optional<StoreOptions> read(const Config& config);
};

class Store {
public:
    Store(StoreOptions options, base::Logger& log);
    /// Where models were kept, old ones go and the oldest of too many.
    ~Store();
    Store(const Store&) = delete;
    Store& operator=(const Store&) = delete;

    [[nodiscard]] std::optional<LogGP> find(const StoreKey& key) noexcept;
    /// What the entry that find would give calls its link.
    [[nodiscard]] std::optional<std::string> link_of(const StoreKey& key) noexcept;
    /// In place of what was known of this key. `link` is for people.
    void keep(const StoreKey& key, std::string_view link, const LogGP& model) noexcept;
    /// What find gave has been found to hold: it counts as new.
    void confirm(const StoreKey& key) noexcept;

    struct Kept {
        StoreEntry entry;
        base::Nanoseconds written = 0;  // or confirmed, by the file system's clock
    };
    struct Content {
        std::vector<Kept> models;  // of all versions, in no order
        std::size_t refused = 0;   // files that are none
    };
    /// Throw the Error of PrivateFolder::open.
    [[nodiscard]] Content content() const;
    /// Removes all of them; how many.
    std::size_t clear();

private:
    [[nodiscard]] std::optional<StoreEntry> read(const StoreKey& key) noexcept;
    void prune() noexcept;
    void refuse(const base::PrivateFolder& folder, const std::string& name, const Error& error);
    void unusable(const Error& error);

    StoreOptions options_;
    base::Logger& log_;
    std::set<std::string> refused_;  // files that were reported
    bool reported_ = false;          // that the folder cannot be used
    base::Nanoseconds newest_ = 0;   // when the last one was written
};

}  // namespace railmux::model

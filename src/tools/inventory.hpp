// Rails, parameters and stored models as text and as JSON.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <railmux/config.hpp>
#include <railmux/stats.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/store.hpp"

namespace railmux::tools {

/// Rows of cells as aligned columns, two blanks between; nothing behind the last cell of a row.
[[nodiscard]] std::string aligned(std::span<const std::vector<std::string>> rows);

/// "1 Gbit/s", "2.5 Gbit/s", "100 Mbit/s"; "-" when unknown.
[[nodiscard]] std::string speed_text(std::uint64_t bits_per_second);

/// By rail: the largest message that goes with its header (LinkModel::eager_max), by the models of earlier runs to whomever.
struct EagerMax {
    std::uint64_t least = 0;
    std::uint64_t most = 0;
};
using EagerMaxima = std::map<std::string, EagerMax, std::less<>>;

/// Of the usable ones; `bound` (eager.max) where there is no model. `host` is this one.
[[nodiscard]] EagerMaxima eager_maxima(std::span<const RailInfo> rails, const model::Store::Content& content,
                                       std::string_view host, PerByte copying, std::uint64_t bound);

/// Rails that are off for the same reason share a line, unless `all` are to be seen.
[[nodiscard]] std::string rails_table(std::span<const RailInfo> rails, const EagerMaxima& eager, bool all);
[[nodiscard]] nlohmann::ordered_json rails_json(std::span<const RailInfo> rails, const EagerMaxima& eager);

/// The models of earlier runs, by name, the youngest first, and only that of each pair of rails unless `all` are to be seen;
/// `now` by the clock of their files.
[[nodiscard]] std::string models_table(model::Store::Content content, base::Nanoseconds now, bool all);
[[nodiscard]] nlohmann::ordered_json models_json(model::Store::Content content, base::Nanoseconds now);

[[nodiscard]] std::string parameters_table(std::span<const Parameter> parameters);
[[nodiscard]] nlohmann::ordered_json parameters_json(std::span<const Parameter> parameters);

}  // namespace railmux::tools

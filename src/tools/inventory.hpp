// Rails and parameters as text and as JSON.
//
// Threads: pure functions.
// Lifetime: none.
#pragma once

#include <railmux/config.hpp>
#include <railmux/stats.hpp>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace railmux::tools {

/// Rows of cells as aligned columns, two blanks between; nothing behind the last cell of a row.
[[nodiscard]] std::string aligned(std::span<const std::vector<std::string>> rows);

/// "1 Gbit/s", "2.5 Gbit/s", "100 Mbit/s"; "-" when unknown.
[[nodiscard]] std::string speed_text(std::uint64_t bits_per_second);

[[nodiscard]] std::string rails_table(std::span<const RailInfo> rails);
[[nodiscard]] nlohmann::ordered_json rails_json(std::span<const RailInfo> rails);

[[nodiscard]] std::string parameters_table(std::span<const Parameter> parameters);
[[nodiscard]] nlohmann::ordered_json parameters_json(std::span<const Parameter> parameters);

}  // namespace railmux::tools

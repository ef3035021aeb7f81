#include "trace/format.hpp"

#include <fmt/format.h>

#include <railmux/error.hpp>

namespace railmux::trace {

std::vector<std::byte> encode(const Header& header) {
    const auto shortened = [](const std::string& text) { return std::string_view(text).substr(0, longest_name); };
    base::Writer inner;
    inner.write(header.rank).write(header.pid);
    inner.write(static_cast<std::uint64_t>(header.started)).write(static_cast<std::uint64_t>(header.wall));
    inner.text(shortened(header.host)).text(shortened(header.policy));
    inner.write(static_cast<std::uint16_t>(header.rails.size()));
    for (const auto& rail : header.rails) inner.text(shortened(rail.name)).write(rail.speed_bps);

    base::Writer all;
    all.append(std::as_bytes(std::span(magic)));
    all.write(version).write(static_cast<std::uint32_t>(inner.view().size())).append(inner.view());
    return std::move(all).take();
}

std::string_view frame_name(std::uint8_t type) noexcept {
    switch (type) {
        case 3: return "bye";
        case 16: return "eager";
        case 17: return "rts";
        case 18: return "cts";
        case 19: return "piece";
        case 21: return "inlined";
        case 22: return "bundle";
        case 32: return "put";
        case 33: return "get";
        case 34: return "atomic";
        case 35: return "put_request";
        case 36: return "get_request";
        case 37: return "got";
        case 38: return "results";
        default: return "frame";
    }
}

std::string expand_path(std::string_view pattern, std::uint32_t rank, std::uint32_t pid) {
    std::string path;
    bool own = rank == no_rank;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] != '%') {
            path += pattern[i];
            continue;
        }
        switch (++i < pattern.size() ? pattern[i] : '\0') {
            case '%': path += '%'; break;
            case 'p':
                path += std::to_string(pid);
                own = true;
                break;
            case 'r':
                path += std::to_string(rank == no_rank ? 0 : rank);
                own = true;
                break;
            default:
                throw Error(ErrorCode::invalid_config, fmt::format("trace: \"{}\" has a % that means nothing", pattern),
                            "write %p for the process id, %r for the rank, %% for a %");
        }
    }
    return own ? path : fmt::format("{}.{}", path, rank);
}

}  // namespace railmux::trace

#include "trace/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>

#include <railmux/error.hpp>

#include "trace/arrivals.hpp"

namespace railmux::trace {

namespace {

// A year. Longer than any trace, and far from what does not fit.
constexpr base::Nanoseconds longest_trace = 366 * 86'400 * base::second;

/// Names go to terminals: no control character gets there.
std::string clean(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    return text;
}

bool begins_as_trace(std::span<const std::byte> bytes) {
    return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

class Parser {
public:
    explicit Parser(std::span<const std::byte> bytes) : bytes_(bytes) {}

    Trace parse() {
        read_header();
        while (at_ < bytes_.size() && read_record()) {
        }
        trace_.cut = at_ < bytes_.size();
        arrivals_.end();
        return std::move(trace_);
    }

private:
    [[noreturn]] void refuse(std::string_view why) const {
        throw Error(ErrorCode::invalid_argument, fmt::format("byte {}: {}", at_, why),
                    "this is no trace that RAILMUX_TRACE of this version has written, or it was damaged");
    }

    void read_header() {
        base::Reader outer(bytes_);
        if (!begins_as_trace(bytes_)) refuse("not a railmux trace");
        static_cast<void>(outer.take(magic.size()));
        if (const auto found = outer.read<std::uint32_t>(); found != version) {
            refuse(fmt::format("a trace of version {}, not {}", found, version));
        }
        const auto length = outer.read<std::uint32_t>();
        base::Reader inner(outer.take(length));
        if (!outer.ok()) refuse("the header is cut off");
        auto& header = trace_.header;
        header.rank = inner.read<std::uint32_t>();
        header.pid = inner.read<std::uint32_t>();
        const auto started = inner.read<std::uint64_t>();
        const auto wall = inner.read<std::uint64_t>();
        constexpr auto most = std::uint64_t{1} << 62;
        if (started > most || wall > most) refuse("a time that cannot be");
        header.started = static_cast<base::Nanoseconds>(started);
        header.wall = static_cast<base::Nanoseconds>(wall);
        header.host = clean(inner.text(longest_name));
        header.policy = clean(inner.text(longest_name));
        const auto rails = inner.read<std::uint16_t>();
        if (rails > most_rails) refuse("more rails than there can be");
        for (int i = 0; i < rails; ++i) {
            auto rail = clean(inner.text(longest_name));
            header.rails.push_back({std::move(rail), inner.read<std::uint64_t>()});
        }
        if (!inner.done()) refuse("a malformed header");
        at_ = bytes_.size() - outer.left();
    }

    /// False when the bytes end within the record.
    bool read_record() {
        switch (static_cast<Kind>(bytes_[at_])) {
            case Kind::peer: return read_peer();
            case Kind::link: return read_link();
            case Kind::offer: return read_offer();
            case Kind::decision: return read_decision();
            case Kind::acknowledged: return read_acknowledged();
        }
        refuse("an unknown kind of record");
    }

    template <typename Record>
    [[nodiscard]] bool take(Record& record, std::size_t more = 0) const noexcept {
        if (bytes_.size() - at_ < sizeof record + more) return false;
        std::memcpy(&record, bytes_.data() + at_, sizeof record);
        return true;
    }

    bool read_peer() {
        PeerRecord record;
        if (!take(record) || !take(record, record.name_bytes)) return false;
        if (record.name_bytes > longest_name) refuse("a name that is too long");
        const auto* name = reinterpret_cast<const char*>(bytes_.data() + at_ + sizeof record);
        trace_.peers[record.peer] = clean({name, record.name_bytes});
        at_ += sizeof record + record.name_bytes;
        return true;
    }

    bool read_link() {
        LinkRecord record;
        if (!take(record)) return false;
        if (record.rail >= trace_.header.rails.size()) refuse("a rail that the header does not have");
        for (const auto cost : {record.latency, record.slope, record.gap, record.per_byte}) {
            if (cost < 0 || cost > costliest) refuse("a cost that cannot be");
        }
        if (record.per_byte == 0) refuse("a rail that takes no time for a byte");
        known_links_[record.link] = static_cast<std::uint32_t>(trace_.links.size());
        trace_.links.push_back({record.peer,
                                record.rail,
                                record.remote_rail,
                                {record.latency, record.slope, record.gap, record.per_byte}});
        at_ += sizeof record;
        return true;
    }

    [[nodiscard]] base::Nanoseconds time_of(std::uint64_t absolute) const {
        const auto since = absolute - static_cast<std::uint64_t>(trace_.header.started);
        // The header is made before the first record, but the engine's clock may have been read a little earlier.
        if (since > static_cast<std::uint64_t>(longest_trace) && -since > static_cast<std::uint64_t>(base::second)) {
            refuse("a time that cannot be");
        }
        return since > static_cast<std::uint64_t>(longest_trace) ? 0 : static_cast<base::Nanoseconds>(since);
    }

    bool read_offer() {
        OfferRecord record;
        if (!take(record)) return false;
        if (record.message == 0) refuse("a large message without a name");
        trace_.offers.push_back({time_of(record.time), record.peer, record.message, record.bytes});
        at_ += sizeof record;
        return true;
    }

    bool read_decision() {
        DecisionRecord record;
        if (!take(record) || !take(record, record.options * sizeof(OptionRecord))) return false;
        if (record.choice >= record.options) refuse("a choice that is none of the options");
        if (record.recent != no_option && record.recent >= record.options) refuse("an option that there is not");
        if ((record.flags & ~decision_flag::all) != 0) refuse("an unknown flag");
        if (trace_.options.size() > std::numeric_limits<std::uint32_t>::max())
            refuse("more than can be analysed at once");
        Decision decision{.time = time_of(record.time),
                          .peer = record.peer,
                          .bytes = record.bytes,
                          .message = record.message,
                          .first = static_cast<std::uint32_t>(trace_.options.size()),
                          .options = record.options,
                          .choice = record.choice,
                          .recent = record.recent,
                          .type = record.type,
                          .again = (record.flags & decision_flag::again) != 0};
        at_ += sizeof record;
        for (int i = 0; i < record.options; ++i) read_option(record.peer);
        arrivals_.decided(record.seq, static_cast<std::uint32_t>(trace_.decisions.size()), decision);
        trace_.decisions.push_back(decision);
        return true;
    }

    void read_option(std::uint32_t peer) {
        OptionRecord record;
        static_cast<void>(take(record));
        const auto known = known_links_.find(record.link);
        if (known == known_links_.end() || trace_.links[known->second].peer != peer) {
            refuse("a link that was not announced");
        }
        trace_.options.push_back({known->second, record.predicted_ns, record.backlog, record.claimed});
        at_ += sizeof record;
    }

    bool read_acknowledged() {
        AcknowledgedRecord record;
        if (!take(record)) return false;
        if ((record.flags & ~acknowledged_flag::all) != 0) refuse("an unknown flag");
        // What the recorder did not record (see Recorder::most_options) is acknowledged all the same.
        arrivals_.acknowledged(record, time_of(record.time));
        at_ += sizeof record;
        return true;
    }

    std::span<const std::byte> bytes_;
    std::size_t at_ = 0;
    Trace trace_;
    Arrivals arrivals_{trace_};
    std::unordered_map<std::uint32_t, std::uint32_t> known_links_;  // number in the file -> place in links
};

}  // namespace

std::string Trace::name_of(std::uint32_t peer) const {
    const auto known = peers.find(peer);
    return known == peers.end() ? fmt::format("peer {}", peer) : known->second;
}

Trace parse(std::span<const std::byte> bytes) { return Parser(bytes).parse(); }

Trace read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw Error(ErrorCode::invalid_argument, path + " cannot be read", "name a file that RAILMUX_TRACE wrote");
    std::vector<char> bytes;
    std::array<char, 64 * 1024> block;
    while (file.read(block.data(), block.size()), file.gcount() > 0) {
        bytes.insert(bytes.end(), block.begin(), block.begin() + file.gcount());
        if (!begins_as_trace(std::as_bytes(std::span(bytes)))) break;  // whatever it is, it need not be read to its end
    }
    if (file.bad()) {
        throw Error(ErrorCode::system, path + " cannot be read to its end", "check that it is a file, and its disk");
    }
    try {
        return parse(std::as_bytes(std::span(bytes)));
    } catch (const Error& error) {
        throw Error(error.code(), fmt::format("{}: {}", path, error.what()), error.cure());
    }
}

}  // namespace railmux::trace

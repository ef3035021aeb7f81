#include "tools/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <vector>

#include "tools/trace_tables.hpp"

namespace railmux::tools {
namespace {

using trace::Decision;
using trace::Trace;

std::string json_text(const std::string& text) {
    auto line = one_line(text);
    line.pop_back();
    return line;
}

double in_us(base::Nanoseconds time) { return static_cast<double>(time) / 1000; }

class Timeline {
public:
    Timeline(std::ostream& to, std::span<const Trace> traces) : to_(to) {
        origin_ = std::numeric_limits<base::Nanoseconds>::max();
        for (const auto& trace : traces) origin_ = std::min(origin_, trace.header.wall);
    }

    void begin() { to_ << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"; }
    void end() { to_ << "\n]}\n"; }

    void add(const Trace& trace, std::size_t process) {
        process_ = process;
        offset_ = trace.header.wall - origin_;
        name_rows(trace);
        for (std::size_t rail = 0; rail < trace.header.rails.size(); ++rail) add_row(trace, rail);
    }

private:
    void event(std::string_view text) {
        to_ << (first_ ? "" : ",\n") << text;
        first_ = false;
    }

    void name_rows(const Trace& trace) {
        event(fmt::format(R"({{"name":"process_name","ph":"M","pid":{},"args":{{"name":{}}}}})", process_,
                          json_text(process_of(trace.header))));
        for (std::size_t rail = 0; rail < trace.header.rails.size(); ++rail) {
            event(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})", process_,
                              rail, json_text(trace.header.rails[rail].name)));
        }
    }

    void add_row(const Trace& trace, std::size_t rail) {
        std::vector<const Decision*> delivered;
        for (const auto& decision : trace.decisions) {
            if (trace.rail_of(decision) != rail) continue;
            if (decision.acknowledged) {
                delivered.push_back(&decision);
            } else {
                bar(trace, decision, rail, decision.time, -1);
            }
        }
        std::stable_sort(delivered.begin(), delivered.end(),
                         [](const Decision* a, const Decision* b) { return a->delivered < b->delivered; });
        base::Nanoseconds free = 0;
        for (std::size_t i = 0; i < delivered.size();) {
            const auto arrival = delivered[i]->delivered;
            auto end = i;
            while (end < delivered.size() && delivered[end]->delivered == arrival) ++end;
            for (; i < end; ++i) {
                const auto begin = std::max(free, delivered[i]->time);
                const auto width = (arrival - begin) / static_cast<base::Nanoseconds>(end - i);
                bar(trace, *delivered[i], rail, begin, width);
                free = begin + width;
            }
        }
    }

    /// `width` -1: it was never acknowledged, and is shown as an arrow.
    void bar(const Trace& trace, const Decision& decision, std::size_t rail, base::Nanoseconds begin,
             base::Nanoseconds width) {
        std::string options;
        for (const auto& option : trace.options_of(decision)) {
            const auto& link = trace.links[option.link];
            options += fmt::format("{}{} {:.2f} us", options.empty() ? "" : ", ", trace.header.rails[link.rail].name,
                                   in_us(option.predicted));
        }
        const auto shape =
            width < 0 ? std::string(R"("ph":"i","s":"t")") : fmt::format(R"("ph":"X","dur":{:.3f})", in_us(width));
        const auto real =
            width < 0 ? std::string("null") : fmt::format("{:.3f}", in_us(decision.delivered - decision.time));
        event(fmt::format(R"({{"name":"{} {} B","pid":{},"tid":{},"ts":{:.3f},{},"args":{{"peer":{},"sent_us":{:.3f},)"
                          R"("predicted_us":{:.3f},"real_us":{},"real_is":"{}","predicted":{}}}}})",
                          trace::frame_name(decision.type), decision.bytes, process_, rail, in_us(offset_ + begin),
                          shape, json_text(trace.name_of(decision.peer)), in_us(offset_ + decision.time),
                          in_us(trace.chosen(decision).predicted), real,
                          width < 0        ? "unknown"
                          : decision.timed ? "timed"
                                           : "at most",
                          json_text(options)));
    }

    std::ostream& to_;
    bool first_ = true;
    base::Nanoseconds origin_ = 0;
    base::Nanoseconds offset_ = 0;
    std::size_t process_ = 0;
};

}  // namespace

void write_timeline(std::ostream& to, std::span<const Trace> traces) {
    Timeline timeline(to, traces);
    timeline.begin();
    for (std::size_t i = 0; i < traces.size(); ++i) timeline.add(traces[i], i);
    timeline.end();
}

}  // namespace railmux::tools

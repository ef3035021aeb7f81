#include "model/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace railmux::model {

namespace {

constexpr double width = 1040, height = 600;
constexpr double left = 90, right = 760, top = 56, bottom = 530;  // of the plot; the legend stands right of it
constexpr double max_ratio = 50;            // of the rails' largest times, for linear axes to show all of them
constexpr double linear_bytes = 128 << 10;  // beyond, most of the sizes are at the very left

// Okabe and Ito's colours, which those who see colours differently tell apart, too.
constexpr std::array colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"};

std::string escaped(const std::string& text) {
    std::string result;
    for (const char c : text) {
        switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            default: result += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return result;
}

std::string size_label(double bytes) {
    if (bytes >= 1 << 20) return fmt::format("{:g} MiB", bytes / (1 << 20));
    if (bytes >= 1 << 10) return fmt::format("{:g} KiB", bytes / (1 << 10));
    return bytes == 0 ? "0" : fmt::format("{:g} B", bytes);
}

std::string time_label(double ns) {
    if (ns >= 1e9) return fmt::format("{:g} s", ns / 1e9);
    if (ns >= 1e6) return fmt::format("{:g} ms", ns / 1e6);
    if (ns >= 1e3) return fmt::format("{:g} us", ns / 1e3);
    return ns == 0 ? "0" : fmt::format("{:g} ns", ns);
}

double prtt(const LogGP& model, double bytes) {
    return 2 * (model.predict(static_cast<std::uint64_t>(bytes)).delivery - model.jitter).count();
}

double gap(const LogGP& model, double bytes) { return model.predict(static_cast<std::uint64_t>(bytes)).rail.count(); }

/// From values to places on the sheet, along one axis.
class Scale {
public:
    Scale(double low, double high, double from, double to, bool logarithmic)
        : low_(low), high_(high), from_(from), to_(to), logarithmic_(logarithmic) {}

    [[nodiscard]] double at(double value) const {
        const double share = logarithmic_ ? std::log(std::max(value, low_) / low_) / std::log(high_ / low_)
                                          : (value - low_) / (high_ - low_);
        return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
    }
    [[nodiscard]] double value(double share) const {
        return logarithmic_ ? low_ * std::pow(high_ / low_, share) : low_ + share * (high_ - low_);
    }
    [[nodiscard]] double low() const { return low_; }
    [[nodiscard]] double high() const { return high_; }

    /// Round values: with `base` 10 and 2, 5 in between for times; powers of two for sizes.
    [[nodiscard]] std::vector<double> ticks(bool sizes) const {
        std::vector<double> result;
        if (logarithmic_) {
            const double base = sizes ? 4 : 10;
            const auto power_of = [&](double value) { return std::log(value) / std::log(base); };
            const auto last = std::lround(std::floor(power_of(high_ * 1.001)));
            for (auto power = std::lround(std::ceil(power_of(low_) - 1e-9)); power <= last; ++power) {
                result.push_back(std::pow(base, power));
            }
            return result;
        }
        double step = 1;
        if (sizes) {
            while (step < high_ / 8.5) step *= 2;
        } else {
            step = std::pow(10, std::floor(std::log10(high_ / 5)));
            step *= high_ / step > 25 ? 5 : high_ / step > 12 ? 2 : 1;
        }
        const auto last = std::lround(std::floor(high_ * 1.001 / step));
        for (long i = 0; i <= last; ++i) result.push_back(static_cast<double>(i) * step);
        return result;
    }

private:
    double low_, high_, from_, to_;
    bool logarithmic_;
};

struct Extent {
    double most_bytes = 1, least_ns = std::numeric_limits<double>::max(), most_ns = 0;
    bool logarithmic = false;
};

Extent extent_of(std::span<const PictureRail> rails, Axes axes) {
    Extent extent;
    double slow = 0, fast = std::numeric_limits<double>::max();
    for (const auto& rail : rails) {
        double rail_most = 0;
        for (const auto& size : rail.sizes) {
            extent.most_bytes = std::max(extent.most_bytes, static_cast<double>(size.bytes));
            rail_most = std::max(rail_most, size.single.median);
            for (const double ns : {size.single.median, size.gap.median}) {
                if (ns > 0) extent.least_ns = std::min(extent.least_ns, ns);
            }
        }
        slow = std::max(slow, rail_most);
        fast = std::min(fast, rail_most);
    }
    extent.most_ns = std::max(slow, 1.0);
    extent.least_ns = std::min(extent.least_ns, extent.most_ns);
    extent.most_bytes = std::max(extent.most_bytes, 2.0);
    const bool wide = slow > max_ratio * fast || extent.most_bytes > linear_bytes;
    extent.logarithmic = axes == Axes::logarithmic || (axes == Axes::by_range && wide);
    return extent;
}

class Sheet {
public:
    Sheet(const Extent& extent)
        : x_(extent.logarithmic ? 1 : 0, extent.most_bytes * (extent.logarithmic ? 1.2 : 1.03), left, right,
             extent.logarithmic),
          y_(extent.logarithmic ? extent.least_ns / 1.5 : 0, extent.most_ns * (extent.logarithmic ? 1.5 : 1.08), bottom,
             top, extent.logarithmic) {}

    void begin(const std::string& title) {
        text_ += fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"white\"/>\n",
            width, height);
        label(left, 30, title, "start", 17);
    }

    void axes() {
        for (const double tick : x_.ticks(true)) {
            line(x_.at(tick), top, x_.at(tick), bottom, "stroke=\"#e4e4e4\"");
            label(x_.at(tick), bottom + 20, size_label(tick), "middle");
        }
        for (const double tick : y_.ticks(false)) {
            line(left, y_.at(tick), right, y_.at(tick), "stroke=\"#e4e4e4\"");
            label(left - 8, y_.at(tick) + 4, time_label(tick), "end");
        }
        text_ +=
            fmt::format("<rect x=\"{:g}\" y=\"{:g}\" width=\"{:g}\" height=\"{:g}\" fill=\"none\" stroke=\"#444\"/>\n",
                        left, top, right - left, bottom - top);
        label((left + right) / 2, bottom + 46, "message size s (bytes)", "middle");
        text_ += fmt::format("<text transform=\"translate(22 {:g}) rotate(-90)\" text-anchor=\"middle\">time</text>\n",
                             (top + bottom) / 2);
    }

    void rail(const PictureRail& rail, const char* colour) {
        for (const auto& range : rail.model.ranges) {
            const auto end = static_cast<double>(range.up_to_bytes);
            if (end >= x_.high()) continue;
            line(
                x_.at(end), top, x_.at(end), bottom,
                fmt::format("stroke=\"{}\" stroke-dasharray=\"2 4\" stroke-dashoffset=\"{}\"", colour, 3 * changes_++));
        }
        curve(rail.model, prtt, fmt::format("stroke=\"{}\" stroke-width=\"1.6\"", colour));
        curve(rail.model, gap, fmt::format("stroke=\"{}\" stroke-width=\"1.2\" stroke-dasharray=\"7 4\"", colour));
        for (const auto& size : rail.sizes) {
            const auto x = x_.at(static_cast<double>(size.bytes));
            dot(x, y_.at(size.single.median), fmt::format("fill=\"{}\"", colour));
            if (size.gap.kept > 0) {
                dot(x, y_.at(size.gap.median), fmt::format("fill=\"white\" stroke=\"{}\"", colour));
            }
        }
    }

    void legend(std::span<const PictureRail> rails) {
        const double x = right + 24;
        double y = top + 10;
        for (std::size_t i = 0; i < rails.size(); ++i) {
            const auto* colour = colours[i % colours.size()];
            text_ += fmt::format("<rect x=\"{:g}\" y=\"{:g}\" width=\"22\" height=\"11\" fill=\"{}\"/>\n", x, y - 10,
                                 colour);
            label(x + 30, y, rails[i].name, "start");
            const auto& ranges = rails[i].model.ranges;
            for (const auto& range : ranges)
                label(x + 30, y += 17, range_label(range, ranges.size() == 1), "start", 11);
            y += 26;
        }
        y = std::max(y + 10, bottom - 88);
        dot(x + 11, y - 4, "fill=\"#444\"");
        label(x + 30, y, "PRTT(1,0,s), median", "start");
        dot(x + 11, y + 18, "fill=\"white\" stroke=\"#444\"");
        label(x + 30, y + 22, "gap between messages", "start");
        line(x, y + 40, x + 22, y + 40, "stroke=\"#444\" stroke-width=\"1.6\"");
        label(x + 30, y + 44, "model: 2 (L + o_s + o_r + (s-1) G)", "start");
        line(x, y + 62, x + 22, y + 62, "stroke=\"#444\" stroke-dasharray=\"7 4\"");
        label(x + 30, y + 66, "model: g + (s-1) G", "start");
        line(x + 11, y + 76, x + 11, y + 92, "stroke=\"#444\" stroke-dasharray=\"2 4\"");
        label(x + 30, y + 88, "protocol changes", "start");
    }

    std::string end() && { return std::move(text_) + "</svg>\n"; }

private:
    static std::string range_label(const ProtocolRange& range, bool only) {
        const bool last = range.up_to_bytes == std::numeric_limits<std::uint64_t>::max();
        const auto until = only   ? std::string("all sizes")
                           : last ? std::string("above")
                                  : "to " + size_label(static_cast<double>(range.up_to_bytes));
        return fmt::format("{}: L {:.3g} us, {:.3g} Gbit/s", until, range.L.fixed.count() / 1e3,
                           range.G.bits_per_second() / 1e9);
    }

    void curve(const LogGP& model, double (*value)(const LogGP&, double), const std::string& style) {
        std::string points;
        const auto* previous = &model.ranges.front();
        constexpr int steps = 400;
        for (int i = 0; i <= steps; ++i) {
            const double bytes = std::max(1.0, std::floor(x_.value(static_cast<double>(i) / steps)));
            const auto& range = model.range(static_cast<std::uint64_t>(bytes));
            if (&range != previous) {  // do not join two protocols
                polyline(std::exchange(points, {}), style);
                previous = &range;
            }
            const double y = value(model, bytes);
            if (y <= y_.high()) points += fmt::format("{:.1f},{:.1f} ", x_.at(bytes), y_.at(y));
        }
        polyline(points, style);
    }

    void polyline(const std::string& points, const std::string& style) {
        text_ += fmt::format("<polyline points=\"{}\" fill=\"none\" {}/>\n", points, style);
    }
    void line(double x1, double y1, double x2, double y2, const std::string& style) {
        text_ +=
            fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
    }
    void dot(double x, double y, const std::string& style) {
        text_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" {}/>\n", x, y, style);
    }
    void label(double x, double y, const std::string& words, const char* anchor, int size = 13) {
        text_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\">{}</text>\n", x, y,
                             anchor, size, escaped(words));
    }

    Scale x_, y_;
    std::string text_;
    int changes_ = 0;  // drawn: two at one size show both their colours
};

}  // namespace

std::string draw_probe(std::span<const PictureRail> rails, const std::string& title, Axes axes) {
    Sheet sheet(extent_of(rails, axes));
    sheet.begin(title);
    sheet.axes();
    for (std::size_t i = 0; i < rails.size(); ++i) sheet.rail(rails[i], colours[i % colours.size()]);
    sheet.legend(rails);
    return std::move(sheet).end();
}

}  // namespace railmux::model

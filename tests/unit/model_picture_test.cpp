// Pictures: complete, escaped, and within the sheet. RAILMUX_TEST_PICTURES names a folder to keep some in.
#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <regex>

#include "model/picture.hpp"
#include "unit/model_worlds.hpp"

using namespace railmux;

namespace {

model::PictureRail probed(const test::System& system, double noise) {
    test::FormulaLink link(system.truth, noise * system.truth.predict(1).delivery.count(), 1);
    model::Prober prober({.kind = model::ProbeKind::full});
    const auto& outcome = run(prober, link);
    return {std::string(system.name), outcome.assessment.sizes, outcome.assessment.model};
}

void keep(const std::string& name, const std::string& svg) {
    if (const char* folder = std::getenv("RAILMUX_TEST_PICTURES"))
        std::ofstream(std::string(folder) + "/" + name) << svg;
}

std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("a picture shows all rails with points, lines and changes", "[model]") {
    const auto systems = test::systems();
    std::vector<model::PictureRail> similar{probed(systems[0], 0.1), probed(systems[6], 0.1)};
    similar[0].name = "<a> & \"b\"";
    const auto svg = model::draw_probe(similar, "two rails");
    keep("similar.svg", svg);
    CHECK(svg.starts_with("<svg"));
    CHECK(svg.ends_with("</svg>\n"));
    CHECK(svg.find("&lt;a&gt; &amp; &quot;b&quot;") != std::string::npos);
    CHECK(svg.find("<a>") == std::string::npos);
    CHECK(count(svg, "<circle") == 2 * (similar[0].sizes.size() + similar[1].sizes.size()) + 2);
    CHECK(count(svg, "stroke-dasharray=\"2 4\"") == 3 + 1);  // one change and two, and the legend
    CHECK(svg.find("nan") == std::string::npos);
    const std::regex x("c[xy]=\"([0-9.]+)\"");
    for (std::sregex_iterator at(svg.begin(), svg.end(), x), end; at != end; ++at) CHECK(std::stod((*at)[1]) <= 1040);

    std::vector<model::PictureRail> all;
    for (const auto& system : systems) all.push_back(probed(system, 0.1));
    keep("all.svg", model::draw_probe(all, "PRTT of seven systems"));
}

TEST_CASE("a picture of nothing is a picture", "[model]") {
    CHECK(model::draw_probe({}, "nothing").ends_with("</svg>\n"));
    const std::vector<model::PictureRail> empty(1);
    CHECK(model::draw_probe(empty, "").find("nan") == std::string::npos);
}

// tools/draw and what the commands draw with it.
#include <gtest/gtest.h>

#include "test/tools/drawn.h"
#include "tools/draw/chart_json.h"
#include "tools/draw/heat_map.h"
#include "tools/explain/explanation.h"
#include "tools/plan/plan_view.h"
#include "tools/probe/findings.h"
#include "tools/topo/drawing.h"
#include "topology/host/machine_read.h"

namespace riffle::tools::drawing_test {
namespace {

constexpr char kLongName[] = "a-very-long-host-name-of-a-rack-017.cluster.example.org";

TEST(Palette, ContrastIsTheOneOfTheWcag) {
  EXPECT_NEAR(contrast("#000000", "#ffffff"), 21, 1e-9);
  EXPECT_NEAR(contrast("#ffffff", "#767676"), 4.54, 0.01);
  EXPECT_NEAR(contrast("#123456", "#123456"), 1, 1e-9);
}

TEST(Palette, EveryColourHasALegibleInk) {
  for (int i = 0; i <= static_cast<int>(Paint::kNoData); ++i) {
    const Colour& colour = colour_of(static_cast<Paint>(i));
    EXPECT_EQ(paint_named(colour.name), static_cast<Paint>(i));
    for (const char* one : {colour.light, colour.dark}) EXPECT_GE(contrast(one, ink_on(one)), 4.5);
  }
  EXPECT_FALSE(paint_named("zebra"));
}

TEST(DrawnText, IsWrappedAndShortened) {
  EXPECT_EQ(wrapped("one two three", text_width("one two", 12), 12),
            (std::vector<std::string>{"one two", "three"}));
  const std::string cut = shortened("ünïcödé-name-that-is-long", 60, 12);
  EXPECT_TRUE(cut.ends_with("…")) << cut;
  EXPECT_LE(text_width(cut, 12), 60);
  EXPECT_EQ(shortened("short", 60, 12), "short");
}

TEST(Ticks, AreRoundAndReachTheLargestValue) {
  EXPECT_EQ(ticks(3.9, 4), (std::vector<double>{0, 1, 2, 3, 4}));
  EXPECT_EQ(ticks(100, 4), (std::vector<double>{0, 25, 50, 75, 100}));
  EXPECT_EQ(ticks(0, 4).back(), 1);
  for (const double most : {1e-6, 0.7, 12.0, 4e5}) EXPECT_GE(ticks(most, 4).back(), 0.999 * most);
}

Fabric racks(int count, int nodes_each, std::int64_t uplink_kbps) {
  Fabric fabric = even_fabric(count * nodes_each, 400'000);
  fabric.racks.clear();
  for (int r = 0; r < count; ++r) {
    fabric.racks.push_back({"r" + std::to_string(r), uplink_kbps, uplink_kbps});
  }
  for (std::size_t n = 0; n < fabric.nodes.size(); ++n) {
    fabric.nodes[n].rack = static_cast<int>(n) % count;
    fabric.nodes[n].name = "node" + std::to_string(n);
  }
  return fabric;
}

std::string drawn_plan(const Fabric& fabric) {
  const auto choice = plan(fabric, 32 << 20, {});
  EXPECT_TRUE(choice.is_ok()) << choice.status().message();
  return to_svg(PlanView(fabric, *choice, 32 << 20));
}

TEST(PlanDrawing, IsSoundForAnyNetwork) {
  expect_sound(drawn_plan(racks(2, 4, 200'000)));
  expect_sound(drawn_plan(even_fabric(1, 1000)));
  expect_sound(drawn_plan(even_fabric(17, 25'000'000)));
  Fabric straggler = racks(3, 5, 0);
  straggler.nodes[3].out_kbps = 100'000;
  straggler.nodes[7].name = kLongName;
  straggler.racks[1].name = kLongName;
  expect_sound(drawn_plan(straggler));
  Fabric large = racks(9, 16, 800'000);
  large.nodes[5].out_kbps = large.nodes[5].in_kbps = 100'000;
  expect_sound(drawn_plan(large));
}

TEST(PlanDrawing, ShowsRatesGroupsAndBound) {
  const Fabric fabric = racks(2, 4, 200'000);
  const Drawn drawn(drawn_plan(fabric));
  for (const char* words : {"predicted for 32 MiB", "× the bound of", "400 Mbit/s",
                            "uplink 200 Mbit/s", "8:1 oversubscribed", "Level 1 of 2: 2 groups",
                            "Level 2 of 2: 4 groups", "each owns 12.5%", "limits the all-reduce"}) {
    EXPECT_TRUE(drawn.says(words)) << words;
  }
  for (const NodeLink& node : fabric.nodes) EXPECT_TRUE(drawn.says(node.name)) << node.name;
  EXPECT_TRUE(drawn.paints.contains("alert")) << "the limit is not marked";
}

ProbeFindings pairs(std::size_t nodes) {
  ProbeFindings f;
  for (std::size_t n = 0; n < nodes; ++n) {
    f.nodes.push_back({n == 1 ? kLongName : "h" + std::to_string(n), 400, 400, 0.9, 0});
    f.pair_mbps.emplace_back(nodes, 380);
    f.pair_mbps.back()[n] = 0;
    if (nodes > 2) f.pair_mbps.back()[(n + 1) % nodes] = 40.0 * static_cast<double>(n + 1);
  }
  f.racks = {{"all", 0, 0, 0.5}};
  return f;
}

TEST(ProbeDrawing, IsSoundAndTellsTheResult) {
  for (const std::size_t nodes : {2, 8, 40, 100}) expect_sound(to_svg(pairs(nodes)));
  EXPECT_TRUE(Drawn(to_svg(pairs(8))).says("slow: path from h0 to"));
  EXPECT_TRUE(Drawn(to_svg(pairs(2))).says("nothing is slow"));
}

TEST(ProbeDrawing, WhatWasNotMeasuredIsHatched) {
  ProbeFindings f = pairs(8);
  f.pair_mbps[3][5] = 0;
  const std::string svg = to_svg(f);
  expect_sound(svg);
  EXPECT_NE(svg.find("class=\"f-no-data\"><title>h3 to h5: not measured"), std::string::npos);
  EXPECT_NE(svg.find("<pattern id=\"no-data\""), std::string::npos);
  EXPECT_TRUE(Drawn(svg).says("not measured"));
}

TEST(TopoDrawing, IsSoundForAMachineAndItsNetwork) {
  for (const char* machine : {"dgx", "dual-socket", "bonded", "no-nics", "cloud-virtio"}) {
    auto read = read_machine_xml(std::string(RIFFLE_MACHINES) + machine + ".xml");
    ASSERT_TRUE(read.is_ok()) << read.status().message();
    topo::View view = topo::view_of(std::move(*read), machine);
    expect_sound(topo::to_svg(view));
    view.fabric = racks(5, 20, 800'000);
    view.fabric->nodes[2].in_kbps = 1000;
    view.fabric_name =
        "a/very/long/path/to/the/file/that/describes/the/network/of/the/cluster.toml";
    expect_sound(topo::to_svg(view));
  }
}

// The drawings of a page.
std::vector<std::string> drawings_in(const std::string& html) {
  std::vector<std::string> found;
  for (std::size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) {
    found.push_back(html.substr(at, html.find("</svg>", at) - at));
  }
  return found;
}

Explanation explanation() {
  Explanation e;
  e.headline = "sending of node h0 limits";
  e.hosts = {"h0", kLongName, "h2"};
  e.resources = {{ResourceKind::kSending, 0, "sending of node h0", 400, 390, 0.97},
                 {ResourceKind::kReceiving, 2, "receiving of node h2", 0, 90, 0.1}};
  e.active_s = 8.5;
  e.bound_s = 8;
  e.x_bound = 1.0625;
  e.link_busy = {{0, 0, 0.95}, {0.5, 0, -1}, {0.31, 0.7, 0}};
  for (int s = 0; s < 20; ++s) e.timeline.push_back({1.0 * s, s == 7 ? 0 : 300.0 + s, 0.5});
  for (const double t : {0.0, 6.0, 6.1, 19.0}) {
    PlanEvent plan;
    plan.t = t;
    plan.name = "racks x rails, ring across";
    plan.cause = "connect";
    e.plans.push_back(plan);
  }
  return e;
}

TEST(ExplainDrawing, ItsPageBeginsWithTheResult) {
  const std::string html = to_html({explanation()});
  const std::vector<std::string> drawings = drawings_in(html);
  ASSERT_EQ(drawings.size(), 3u);  // links, matrix, over time
  for (const std::string& svg : drawings) expect_sound(svg);
  const std::size_t body = html.find("<body>");
  EXPECT_EQ(html.find("<h1>sending of node h0 limits</h1>"), body + 7);
  EXPECT_LT(html.find("1.06 ×"), html.find("<svg"));
}

TEST(ExplainDrawing, NoDataIsNotZeroPercent) {
  const std::string matrix = drawings_in(to_html({explanation()}))[1];
  EXPECT_NE(matrix.find(std::string("class=\"f-part-0\"><title>h0 to ") + kLongName + ": 0 %"),
            std::string::npos);
  EXPECT_NE(
      matrix.find(std::string("class=\"f-no-data\"><title>") + kLongName + " to h2: not recorded"),
      std::string::npos);
  EXPECT_TRUE(Drawn(matrix).in_legend.contains("no-data"));
  EXPECT_TRUE(Drawn(matrix).in_legend.contains("part-0"));
}

constexpr char kBars[] = R"({"title": "t", "bars": [
  {"name": "ours", "parts": [1, 2], "label": "3 s", "paint": "blue", "bold": true},
  {"name": "another library with quite a long name", "parts": [9.5], "label": "9.5 s = 4.2 x bound",
   "paint": "grey"}], "legend": [{"paint": "blue", "text": "ours"}, {"paint": "grey", "text": "o"}],
  "mark": {"at": 2.5, "label": "physical bound 2.5 s"}})";
constexpr char kLines[] = R"({"title": "t", "x": {"before": "step "}, "left": {"after": " s"},
  "right": {"after": " %", "most": 100}, "series": [
  {"name": "a", "paint": "blue", "points": [[0, 1], [1, 2.3], [30, 0.5]], "stepped": true},
  {"name": "b", "paint": "brown", "points": [[0, 10], [20, 98]], "dashed": true, "right": true}],
  "stages": [{"from": 0, "to": 1, "label": "a long name of a stage"}],
  "marks": [{"at": 3, "label": "1"}, {"at": 3.1, "label": "2"}], "mark_text": "something"})";

TEST(ChartJson, DrawsWhatItSays) {
  const auto bars = bar_chart_from_json(kBars);
  ASSERT_TRUE(bars.is_ok()) << bars.status().message();
  expect_sound(draw(*bars));
  EXPECT_TRUE(Drawn(draw(*bars)).says("physical bound 2.5 s"));
  const auto lines = line_chart_from_json(kLines);
  ASSERT_TRUE(lines.is_ok()) << lines.status().message();
  expect_sound(draw(*lines));
  EXPECT_TRUE(Drawn(draw(*lines)).says("100 %"));
}

TEST(ChartJson, SaysWhatIsWrong) {
  EXPECT_NE(bar_chart_from_json("{}").status().message().find("'title' not found"),
            std::string::npos);
  EXPECT_FALSE(bar_chart_from_json("zebra").is_ok());
  std::string unknown = kBars;
  unknown.replace(unknown.find("\"grey\""), 6, "\"mauve\"");
  EXPECT_NE(bar_chart_from_json(unknown).status().message().find("no paint \"mauve\""),
            std::string::npos);
  std::string one_axis = kLines;
  one_axis.replace(one_axis.find("\"right\":"), 8, "\"other\":");
  EXPECT_NE(line_chart_from_json(one_axis).status().message().find("needs a right axis"),
            std::string::npos);
}

}  // namespace
}  // namespace riffle::tools::drawing_test

#include "tools/draw/chart_json.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "topology/base/printed.h"

namespace riffle::tools {
namespace {

using nlohmann::json;

Paint paint_of(const json& in) {
  const std::string name = in.at("paint");
  const auto paint = paint_named(name);
  if (!paint) throw std::invalid_argument("the palette has no paint \"" + name + "\"");
  return *paint;
}

json list(const json& in, const char* name) { return in.value(name, json::array()); }

Axis axis_from(const json& in) {
  const std::string before = in.value("before", ""), after = in.value("after", "");
  return {[=](double value) { return before + printed("%.4g", value) + after; },
          in.value("most", 0.0)};
}

BarChart bars_from(const json& in) {
  BarChart chart;
  chart.title = in.at("title");
  for (const json& bar : in.at("bars")) {
    chart.bars.push_back({bar.at("name"), bar.at("parts").get<std::vector<double>>(),
                          bar.at("label"), paint_of(bar), bar.value("bold", false)});
  }
  for (const json& entry : list(in, "legend")) {
    chart.legend.push_back({LegendEntry::Shape::kBox, paint_of(entry), entry.at("text")});
  }
  if (in.contains("mark")) chart.mark = {in["mark"].at("at"), in["mark"].at("label")};
  return chart;
}

LineChart lines_from(const json& in) {
  LineChart chart;
  chart.title = in.at("title");
  chart.x = axis_from(in.at("x"));
  chart.left = axis_from(in.at("left"));
  if (in.contains("right")) chart.right = axis_from(in["right"]);
  for (const json& series : in.at("series")) {
    chart.series.push_back({series.at("name"), paint_of(series),
                            series.at("points").get<std::vector<std::pair<double, double>>>(),
                            series.value("dashed", false), series.value("stepped", false),
                            series.value("right", false)});
    if (chart.series.back().is_right && !chart.right) {
      throw std::invalid_argument("series \"" + chart.series.back().name + "\" needs a right axis");
    }
  }
  for (const json& stage : list(in, "stages")) {
    chart.stages.push_back({stage.at("from"), stage.at("to"), stage.at("label")});
  }
  for (const json& mark : list(in, "marks")) {
    chart.marks.push_back({mark.at("at"), mark.at("label"), ""});
  }
  chart.mark_text = in.value("mark_text", "");
  return chart;
}

template <class Chart>
Result<Chart> read(const char* what, const std::string& text, Chart (*from)(const json&)) {
  try {
    return from(json::parse(text));
  } catch (const std::exception& e) {
    return invalid_argument(std::string("the JSON of ") + what + " is not understood: " + e.what());
  }
}

}  // namespace

Result<BarChart> bar_chart_from_json(const std::string& text) {
  return read("bars", text, bars_from);
}

Result<LineChart> line_chart_from_json(const std::string& text) {
  return read("lines", text, lines_from);
}

}  // namespace riffle::tools

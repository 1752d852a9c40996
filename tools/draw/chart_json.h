// Charts of other programs of this repository, which draw nothing themselves: from JSON.
//
// bars:  {"title", "bars": [{"name", "parts": [number], "label", "paint", "bold"}],
//         "legend": [{"paint", "text"}], "mark": {"at", "label"}}
// lines: {"title", "x": AXIS, "left": AXIS, "right": AXIS, "mark_text",
//         "series": [{"name", "paint", "points": [[x, y]], "dashed", "stepped", "right"}],
//         "stages": [{"from", "to", "label"}], "marks": [{"at", "label"}]}
// AXIS is {"before", "after", "most"}: what stands around a number, and where it ends. "paint" is a
// name of the palette. Optional: legend, mark, right, stages, marks, and every truth value.
#pragma once

#include <string>

#include "tools/draw/bar_chart.h"
#include "tools/draw/line_chart.h"
#include "topology/base/status.h"

namespace riffle::tools {

Result<BarChart> bar_chart_from_json(const std::string& text);
Result<LineChart> line_chart_from_json(const std::string& text);

}  // namespace riffle::tools

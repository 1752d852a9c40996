// A square matrix in rows (from) and columns (to), each cell in the colour of the range it is in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/draw/palette.h"

namespace riffle::tools {

struct HeatMap {
  struct Range {
    Paint paint;
    std::string text;  // for the legend
  };
  struct Cell {
    std::size_t range = 0;
    std::string label;  // inside the cell where there is room
    std::string tip;    // the value with its unit
  };
  std::string title;
  std::string finding;  // the result in one sentence; may be empty
  std::vector<std::string> names;
  std::vector<Range> ranges;
  std::string missing;                                  // what a cell without data is called
  std::vector<std::vector<std::optional<Cell>>> cells;  // those on the diagonal are not drawn
};

std::string draw(const HeatMap& map);

}  // namespace riffle::tools

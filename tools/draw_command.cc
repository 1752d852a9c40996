// `riffle draw`, for Riffle's own programs that have no drawing code: a chart from JSON on standard
// input as SVG, or the style sheet of pages around such charts.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <memory>

#include "tools/command.h"
#include "tools/draw/chart_json.h"
#include "tools/draw/page.h"

namespace riffle::tools {
namespace {

template <class Chart>
int print_chart(const Result<Chart>& chart) {
  if (!chart) return report(chart.status());
  std::fputs(draw(*chart).c_str(), stdout);
  return 0;
}

int run(const std::string& kind) {
  if (kind == "style") {
    std::fputs(page_style().c_str(), stdout);
    return 0;
  }
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  return kind == "bars" ? print_chart(bar_chart_from_json(text))
                        : print_chart(line_chart_from_json(text));
}

}  // namespace

void add_draw(CLI::App& app, int& exit_code) {
  auto kind = std::make_shared<std::string>();
  CLI::App* sub = app.add_subcommand("draw", "A chart from JSON on standard input, as SVG");
  sub->group("");
  sub->add_option("kind", *kind, "bars, lines; or style: of pages around them")
      ->required()
      ->check(CLI::IsMember({"bars", "lines", "style"}));
  sub->callback([kind, &exit_code] { exit_code = run(*kind); });
}

}  // namespace riffle::tools

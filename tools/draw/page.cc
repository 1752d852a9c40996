#include "tools/draw/page.h"

#include "tools/draw/palette.h"
#include "tools/draw/text.h"

namespace riffle::tools {
namespace {

std::string variables(bool is_dark) {
  std::string text;
  for (const Paint paint : {Paint::kPage, Paint::kArea, Paint::kEdge, Paint::kInk, Paint::kFaint,
                            Paint::kAlert, Paint::kBlue}) {
    const Colour& colour = colour_of(paint);
    text += std::string("--") + colour.name + ":" + (is_dark ? colour.dark : colour.light) + ";";
  }
  return text;
}

constexpr const char* kRules = R"(
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:56rem;
margin:1.5rem auto;padding:0 1rem}
h1{font-size:1.5rem;line-height:1.25;margin:.5rem 0}h2{font-size:1.15rem;margin-top:2rem}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;margin:1rem 0}
.tile{background:var(--area);border-left:4px solid var(--blue);padding:.5rem 1rem;flex:1 1 11rem}
.tile b{display:block;font-size:1.5rem;line-height:1.3}
.note{border-left:4px solid var(--alert);padding:.2rem 1rem;background:var(--area)}
.faint{color:var(--faint);font-size:.9rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;margin:.8rem 0}
td,th{text-align:right;padding:.25rem .7rem;border-bottom:1px solid var(--edge)}
td:first-child,th:first-child{text-align:left}th,td:first-child{white-space:nowrap}
code{font-size:.9em}
)";

}  // namespace

std::string page_style() {
  return ":root{color-scheme:light dark;" + variables(false) +
         "}\n@media (prefers-color-scheme:dark){:root{" + variables(true) + "}}" + kRules;
}

std::string html_page(const std::string& title, const std::string& body) {
  return "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>" +
         escaped(title) + "</title>\n<style>" + page_style() + "</style></head><body>\n" + body +
         "</body></html>\n";
}

std::string html_tiles(const std::vector<std::pair<std::string, std::string>>& tiles) {
  std::string html = "<div class=\"tiles\">\n";
  for (const auto& [value, what] : tiles) {
    html += "<div class=\"tile\"><b>" + escaped(value) + "</b>" + escaped(what) + "</div>\n";
  }
  return html + "</div>\n";
}

std::string html_table(const std::vector<std::vector<std::string>>& rows, bool has_head) {
  std::string html = "<div class=\"wide\"><table>\n";
  for (const auto& row : rows) {
    const std::string kind = has_head && &row == rows.data() ? "th" : "td";
    html += "<tr>";
    for (const std::string& cell : row) {
      html += "<" + kind + ">" + escaped(cell) + "</" + kind + ">";
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace riffle::tools

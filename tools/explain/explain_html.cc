// An explanation as one page: the result first; no script, no other file.
#include <algorithm>
#include <array>

#include "tools/draw/bar_chart.h"
#include "tools/draw/heat_map.h"
#include "tools/draw/line_chart.h"
#include "tools/draw/page.h"
#include "tools/draw/text.h"
#include "tools/explain/explanation.h"
#include "tools/explain/prediction.h"
#include "tools/numbers.h"

namespace riffle::tools {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string percent(double share) { return printed("%.0f %%", 100 * share); }

std::string tiles_section(const Explanation& e) {
  std::vector<std::pair<std::string, std::string>> tiles;
  if (!e.resources.empty()) {
    const Resource& first = e.resources.front();
    tiles.emplace_back(percent(first.share), "of the time in collectives: " + first.name);
  }
  if (e.x_bound) {
    tiles.emplace_back(printed("%.2f ×", *e.x_bound), "the bound of " + seconds_text(*e.bound_s));
  }
  tiles.emplace_back(seconds_text(e.active_s),
                     "in collectives, of " + seconds_text(e.wall_s) + " since connect");
  tiles.emplace_back(bytes_text(e.bytes), "all-reduced on " + counted(e.hosts.size(), "node"));
  return html_tiles(tiles);
}

std::string resource_bars(const Explanation& e) {
  constexpr std::size_t kShown = 24;
  const std::size_t shown = std::min(kShown, e.resources.size());
  BarChart chart;
  chart.title = "Share of the time in collectives in which each link was in use";
  chart.most = 1;
  chart.legend = {{LegendEntry::Shape::kBox, Paint::kAlert, "the busiest"}};
  if (shown > 1) chart.legend.push_back({LegendEntry::Shape::kBox, Paint::kBlue, "other links"});
  chart.legend.push_back({LegendEntry::Shape::kBox, Paint::kPale, "not in use"});
  for (std::size_t i = 0; i < shown; ++i) {
    const Resource& r = e.resources[i];
    std::string label = percent(r.share) + ", " + rate_text(r.carried_mbps);
    if (r.rate_mbps > 0) label += " of " + rate_text(r.rate_mbps);
    chart.bars.push_back({r.name, {r.share}, label, i == 0 ? Paint::kAlert : Paint::kBlue, i == 0});
  }
  std::string html = draw(chart);
  if (shown < e.resources.size()) {
    html += "<p class=\"faint\">" + counted(e.resources.size() - shown, "link") + " more, in use " +
            percent(e.resources[shown].share) + " or less</p>\n";
  }
  return html;
}

std::string timeline_section(const Explanation& e) {
  LineChart chart;
  chart.title = "Bytes all-reduced per second of collective time";
  chart.x = {[](double s) { return printed("%.4g s", s); }, 0};
  chart.left = {[](double mbps) { return rate_text(mbps); }, 0};
  chart.mark_text = "a plan, by its number in the table of plans";
  LineChart::Series series{"all-reduced", Paint::kBlue, {}};
  for (const TimePoint& p : e.timeline) {
    if (p.mbps > 0) series.points.emplace_back(p.t, p.mbps);
    chart.x.most = std::max(chart.x.most, p.t);
  }
  if (series.points.empty()) return "";
  chart.series = {std::move(series)};
  for (std::size_t i = 0; i < e.plans.size(); ++i) {
    chart.marks.push_back({e.plans[i].t, std::to_string(i + 1),
                           e.plans[i].name + ", because of " + cause_text(e.plans[i])});
  }
  return "<h2>Over time</h2>\n" + draw(chart);
}

std::string matrix_section(const Explanation& e) {
  // Each range up to this share.
  constexpr std::array kEnds = {0.1, 0.3, 0.5, 0.7, 0.9};
  HeatMap map;
  map.title =
      "Share of the time in collectives in which data was waiting to be sent, row to column";
  map.names = e.hosts;
  map.ranges = {{Paint::kPart0, "up to 10 %"}, {Paint::kPart1, "up to 30 %"},
                {Paint::kPart2, "up to 50 %"}, {Paint::kPart3, "up to 70 %"},
                {Paint::kPart4, "up to 90 %"}, {Paint::kPart5, "more"}};
  map.missing = "not recorded";
  bool has_any = false;
  for (std::size_t i = 0; i < e.link_busy.size(); ++i) {
    map.cells.emplace_back();
    for (std::size_t j = 0; j < e.link_busy[i].size(); ++j) {
      const double busy = e.link_busy[i][j];
      if (busy < 0) {
        map.cells.back().emplace_back();
        continue;
      }
      has_any |= i != j;
      const auto range = std::lower_bound(kEnds.begin(), kEnds.end(), busy) - kEnds.begin();
      map.cells.back().push_back(
          HeatMap::Cell{static_cast<std::size_t>(range), percent(busy), percent(busy)});
    }
  }
  return has_any ? draw(map) : "";
}

std::string waits_section(const Explanation& e) {
  if (e.waits.empty()) return "";
  Rows rows = {{"node", "waits for", "of its groups"}};
  for (const Wait& w : e.waits) {
    rows.push_back({e.hosts[static_cast<std::size_t>(w.node)],
                    e.hosts[static_cast<std::size_t>(w.by)], percent(w.share)});
  }
  return "<h2>Which node waits for which</h2>\n<p>The node from which the last contribution of a "
         "node's groups came most often.</p>\n" +
         html_table(rows, true);
}

std::string calls_section(const Explanation& e) {
  Rows rows = {{"size", "count", "mean", "median", "99 %", "longest"}};
  for (const auto& [up_to, t] : e.sizes) {
    rows.push_back({"up to " + bytes_text(up_to), std::to_string(t.count),
                    us_text(static_cast<double>(t.total_us) / static_cast<double>(t.count)),
                    us_text(t.quantile_us(0.5)), us_text(t.quantile_us(0.99)),
                    us_text(static_cast<double>(t.max_us))});
  }
  return "<h2>All-reduce calls</h2>\n" + html_table(rows, true) + "<p class=\"faint\">" +
         kCallsAreSlices + "</p>\n";
}

std::string plans_section(const Explanation& e) {
  Rows rows = {{"number", "since connect", "from chunk", "plan", "cause"}};
  std::string reasons;
  for (const PlanEvent& p : e.plans) {
    const std::string number = std::to_string(rows.size());
    rows.push_back(
        {number, printed("%.1f s", p.t), std::to_string(p.from_chunk), p.name, cause_text(p)});
    reasons += "<p class=\"faint\">" + number + ": " + escaped(p.reason) + "</p>\n";
  }
  return "<h2>Plans</h2>\n" + html_table(rows, true) +
         "<details><summary>Why each was chosen</summary>\n" + reasons + "</details>\n";
}

std::string losses_section(const Explanation& e) {
  if (e.losses.empty()) return "";
  Rows rows = {{"since connect", "nodes", "went on", "after"}};
  for (const Loss& loss : e.losses) {
    rows.push_back({printed("%.1f s", loss.event.t), lost_text(e, loss),
                    printed("%d of %d", loss.event.left, static_cast<int>(e.hosts.size())),
                    printed("%.0f ms", loss.slowest_ms)});
  }
  return "<h2>Lost nodes</h2>\n" + html_table(rows, true);
}

std::string section(const Explanation& e) {
  std::string html = "<h1>" + escaped(e.headline) + "</h1>\n";
  if (const std::string origin = origin_text(e); !origin.empty()) {
    html += "<p class=\"faint\">" + escaped(origin) + "</p>\n";
  }
  html += tiles_section(e);
  for (const std::string& why : e.failures) {
    html += "<p class=\"note\">failed: " + escaped(why) + "</p>\n";
  }
  if (!e.resources.empty()) html += resource_bars(e);
  html += "<p class=\"faint\">" + counted(static_cast<std::size_t>(e.recorded_nodes), "record") +
          printed(" of %zu nodes.", e.hosts.size());
  if (e.since_last_plan) html += " Links, waits and bound: since the last plan change.";
  html += "</p>\n" + losses_section(e) + matrix_section(e) + waits_section(e) +
          timeline_section(e) + calls_section(e) + plans_section(e);
  for (const std::string& note : e.notes) {
    html += "<p class=\"faint\">note: " + escaped(note) + "</p>\n";
  }
  return html;
}

}  // namespace

std::string to_html(const std::vector<Explanation>& all) {
  std::string body;
  for (const Explanation& e : all) body += section(e);
  return html_page("riffle explain", body);
}

}  // namespace riffle::tools

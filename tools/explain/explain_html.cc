// An explanation as one page: no script, no other file.
#include <algorithm>

#include "tools/explain/explanation.h"
#include "tools/numbers.h"
#include "tools/svg.h"

namespace riffle::tools {
namespace {

constexpr const char* kHead =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
    "<title>riffle explain</title>\n<style>\n"
    "body{font-family:sans-serif;max-width:70em;margin:2em auto;color:#222;padding:0 1em}\n"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.25em .8em;text-align:right;"
    "border-bottom:1px solid #ddd}td:first-child,th:first-child{text-align:left}\n"
    ".limit{background:#fdf1ef;border-left:4px solid #c0392b;padding:.8em 1em;font-size:1.15em}\n"
    "svg{max-width:100%;height:auto}\n</style></head><body>\n";

std::string row(const std::vector<std::string>& cells, const char* kind = "td") {
  std::string text = "<tr>";
  for (const std::string& cell : cells) {
    text += "<" + std::string(kind) + ">" + escaped(cell) + "</" + kind + ">";
  }
  return text + "</tr>\n";
}

std::string resource_bars(const Explanation& e) {
  constexpr std::size_t kShown = 24;
  constexpr double kRow = 20, kLeft = 270, kWidth = 420;
  const std::size_t n = std::min(kShown, e.resources.size());
  Svg svg(kLeft + kWidth + 190, kRow * static_cast<double>(n) + 10);
  for (std::size_t i = 0; i < n; ++i) {
    const Resource& r = e.resources[i];
    const double y = kRow * static_cast<double>(i);
    svg.text(kLeft - 8, y + 14, r.name, "end");
    svg.box(kLeft, y + 3, kWidth, kRow - 6, "#eee");
    svg.box(kLeft, y + 3, kWidth * r.share, kRow - 6, i == 0 ? "#c0392b" : "#2c6fbb");
    std::string label = printed("%.0f %%, %s", 100 * r.share, rate_text(r.carried_mbps).c_str());
    if (r.rate_mbps > 0) label += " of " + rate_text(r.rate_mbps);
    svg.text(kLeft + kWidth + 8, y + 14, label);
  }
  return svg.document();
}

std::string timeline(const Explanation& e) {
  constexpr double kWidth = 860, kHeight = 220, kLeft = 70, kBottom = 30;
  double most = 0, end = 0.001;
  for (const TimePoint& p : e.timeline) {
    most = std::max(most, p.mbps);
    end = std::max(end, p.t);
  }
  if (most == 0) return "";
  const auto x = [&](double t) {
    return kLeft + (kWidth - kLeft - 20) * std::clamp(t / end, 0.0, 1.0);
  };
  const auto y = [&](double mbps) { return 20 + (kHeight - 20 - kBottom) * (1 - mbps / most); };
  Svg svg(kWidth, kHeight);
  svg.line(kLeft, y(0), x(end), y(0), "#888");
  svg.line(kLeft, y(0), kLeft, y(most), "#888");
  svg.text(kLeft - 6, y(most) + 4, rate_text(most), "end", 10);
  svg.text(kLeft - 6, y(0) + 4, "0", "end", 10);
  svg.text(x(end), kHeight - 10, printed("%.0f s", end), "end", 10);
  svg.text(kLeft, kHeight - 10, "connect", "middle", 10);
  for (const PlanEvent& plan : e.plans) {
    svg.line(x(plan.t), y(0), x(plan.t), y(most), "#c0392b", 1.5,
             plan.name + ", because of " + plan.cause);
    svg.text(x(plan.t) + 3, 14, plan.name, "start", 10, "#c0392b");
  }
  std::vector<std::pair<double, double>> points;
  for (const TimePoint& p : e.timeline) {
    if (p.mbps > 0) points.emplace_back(x(p.t), y(p.mbps));
  }
  svg.polyline(points, "#2c6fbb", 2);
  return svg.document();
}

std::string matrix(const Explanation& e) {
  if (e.link_busy.empty()) return "";
  HeatMap map{
      "share of the time in collectives in which data was waiting to be sent, row to column",
      e.hosts,
      e.link_busy,
      {}};
  bool has_any = false;
  for (std::size_t i = 0; i < e.hosts.size(); ++i) {
    map.label.emplace_back();
    for (std::size_t j = 0; j < e.hosts.size(); ++j) {
      has_any |= i != j && e.link_busy[i][j] >= 0;
      map.label.back().push_back(
          e.link_busy[i][j] < 0 ? "-" : printed("%.0f%%", 100 * e.link_busy[i][j]));
    }
  }
  return has_any ? draw(map) : "";
}

std::string section(const Explanation& e) {
  std::string html = "<p class=\"limit\">" + escaped(e.headline) + "</p>\n<table>\n";
  html += row({"nodes", std::to_string(e.hosts.size())});
  html += row({"nodes whose record was given", std::to_string(e.recorded_nodes)});
  html += row({"all-reduced", bytes_text(e.bytes)});
  html += row({"time in collectives", seconds_text(e.active_s) + " of " + seconds_text(e.wall_s)});
  if (e.bound_s) html += row({"bound", seconds_text(*e.bound_s)});
  html += "</table>\n";
  if (e.since_last_plan) html += "<p>Links, waits and bound: since the last plan change.</p>\n";
  if (!e.resources.empty()) html += "<h2>Links</h2>\n" + resource_bars(e);
  html += matrix(e);
  if (!e.waits.empty()) {
    html +=
        "<h2>Who waits for whom</h2>\n<p>The node from which the last contribution of a node's "
        "groups came most often.</p>\n<table>\n" +
        row({"node", "waits for", "of its groups"}, "th");
    for (const Wait& w : e.waits) {
      html += row({e.hosts[static_cast<std::size_t>(w.node)],
                   e.hosts[static_cast<std::size_t>(w.by)], printed("%.0f %%", 100 * w.share)});
    }
    html += "</table>\n";
  }
  html += "<h2>All-reduce calls</h2>\n<table>\n" +
          row({"size", "count", "mean", "median", "99 %", "longest"}, "th");
  for (const auto& [up_to, t] : e.sizes) {
    html += row({"up to " + bytes_text(up_to), std::to_string(t.count),
                 us_text(static_cast<double>(t.total_us) / static_cast<double>(t.count)),
                 us_text(t.quantile_us(0.5)), us_text(t.quantile_us(0.99)),
                 us_text(static_cast<double>(t.max_us))});
  }
  html += "</table>\n";
  if (const std::string drawing = timeline(e); !drawing.empty()) {
    html += "<h2>Bytes all-reduced per second of collective time</h2>\n" + drawing;
  }
  html += "<h2>Plans</h2>\n<table>\n" + row({"since connect", "from chunk", "plan", "cause"}, "th");
  for (const PlanEvent& p : e.plans) {
    html += row({printed("%.1f s", p.t), std::to_string(p.from_chunk), p.name, p.cause});
    html += "<tr><td colspan=\"4\">" + escaped(p.reason) + "</td></tr>\n";
  }
  html += "</table>\n";
  if (!e.losses.empty()) {
    html += "<h2>Lost nodes</h2>\n<table>\n" +
            row({"since connect", "nodes", "went on", "after"}, "th");
    for (const Loss& loss : e.losses) {
      html += row({printed("%.1f s", loss.event.t), lost_text(e, loss),
                   printed("%d of %d", loss.event.left, static_cast<int>(e.hosts.size())),
                   printed("%.0f ms", loss.slowest_ms)});
    }
    html += "</table>\n";
  }
  for (const std::string& why : e.failures) html += "<p>failed: " + escaped(why) + "</p>\n";
  for (const std::string& note : e.notes) html += "<p>note: " + escaped(note) + "</p>\n";
  return html;
}

}  // namespace

std::string to_html(const std::vector<Explanation>& all) {
  std::string html = kHead;
  for (const Explanation& e : all) html += section(e);
  return html + "</body></html>\n";
}

}  // namespace riffle::tools

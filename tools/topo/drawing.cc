#include "tools/topo/drawing.h"

#include <algorithm>

#include "tools/svg.h"
#include "tools/topo/fabric_view.h"
#include "tools/topo/layout.h"

namespace riffle::tools::topo {
using riffle::to_text;  // of lists of CPUs; the ones here would hide it

namespace {

constexpr double kMargin = 20, kColumn = 330, kPad = 12, kCard = 26, kCore = 9, kCorePitch = 12;
constexpr int kColumnsPerRow = 4;
constexpr double kHead = 118;
constexpr const char* kGpu = "#6b5b95";
constexpr const char* kUsed = "#2e7d5b";
constexpr const char* kUnused = "#6b7280";
constexpr const char* kProgress = "#2c6fbb";
constexpr const char* kJob = "#b8c4d3";
constexpr const char* kForeign = "#eceff3";

std::string shortened(const std::string& text, std::size_t length) {
  return text.size() <= length ? text : text.substr(0, length - 1) + "…";
}

class Drawing {
 public:
  explicit Drawing(const View& view)
      : view_(view), machine_(view.machine), sides_(sides_of(machine_)) {}

  std::string write() {
    const int columns = std::clamp(static_cast<int>(sides_.size()), 2, kColumnsPerRow);
    const double width = 2 * kMargin + columns * (kColumn + kPad) - kPad;
    std::vector<double> row_heights;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      if (i % static_cast<std::size_t>(columns) == 0) row_heights.push_back(0);
      row_heights.back() = std::max(row_heights.back(), height_of(sides_[i]));
    }
    double height = kHead + (virtual_nics(machine_).empty() ? 0 : 24) + 10;
    for (const double h : row_heights) height += h + kPad;
    if (view_.fabric) height += 20 + drawn_height(*view_.fabric, width);
    Svg svg(width, height);
    head(svg);
    double y = kHead;
    for (std::size_t i = 0; i < sides_.size(); ++i) {
      const auto column = i % static_cast<std::size_t>(columns);
      if (i > 0 && column == 0) y += row_heights[i / static_cast<std::size_t>(columns) - 1] + kPad;
      draw_side(svg, sides_[i], kMargin + static_cast<double>(column) * (kColumn + kPad), y,
                row_heights[i / static_cast<std::size_t>(columns)]);
    }
    if (!row_heights.empty()) y += row_heights.back() + kPad;
    y = draw_virtual(svg, y, width);
    if (view_.fabric) draw(*view_.fabric, view_.fabric_name, y + 20, width, svg);
    return svg.document();
  }

 private:
  static int cores_per_row() { return static_cast<int>((kColumn - 2 * kPad) / kCorePitch); }

  static double height_of(const Side& side) {
    const int rows = (side.cores + cores_per_row() - 1) / cores_per_row();
    double height = 46 + rows * kCorePitch + 10;
    for (const Branch& branch : side.branches) {
      const auto cards = static_cast<double>(branch.gpus.size() + branch.nics.size());
      height += cards * (kCard + 4) + (branch.switches.empty() ? 4 : 30);
    }
    return height;
  }

  void head(Svg& svg) const {
    svg.text(kMargin, 30, view_.name, "start", 18);
    std::string models;
    for (const Processor& p : machine_.processors) {
      if (!p.model.empty() && models.find(p.model) == std::string::npos) {
        models += (models.empty() ? "" : ", ") + p.model;
      }
    }
    svg.text(kMargin, 50,
             std::to_string(machine_.processors.size()) + " × " +
                 (models.empty() ? "processor" : models) + ", " +
                 std::to_string(machine_.cores.size()) + " cores",
             "start", 12, "#555");
    std::string uses;
    for (const Device& d : view_.devices) {
      uses += (uses.empty() ? "" : "; ") + d.name + " = " + interfaces_of(d) + " (" +
              rate_text(d.speed_mbps) + ")";
    }
    svg.text(kMargin, 70, shortened("NCCL sees " + uses, 105), "start", 12, "#222");
    double x = kMargin;
    const auto legend = [&](const char* colour, const char* text, double step) {
      svg.box(x, 86, 12, 12, colour, "#888");
      svg.text(x + 17, 96, text, "start", 11, "#555");
      x += step;
    };
    legend(kUsed, "NIC that Riffle uses", 145);
    legend(kUnused, "NIC left out", 100);
    if (!machine_.gpus.empty()) legend(kGpu, "GPU", 60);
    legend(kJob, "core the job may use", 150);
    if (!view_.placement.cpus.empty()) legend(kProgress, "core of progress threads", 160);
  }

  void draw_cores(Svg& svg, const Side& side, double x, double y) const {
    int index = 0;
    for (const Core& core : machine_.cores) {
      if (side.node == nullptr || core.numa_node != side.node->id) continue;
      const bool is_ours = !intersection(core.cpus, view_.job_cpus).empty();
      const bool is_progress = !intersection(core.cpus, view_.placement.cpus).empty();
      svg.box(x + (index % cores_per_row()) * kCorePitch, y + index / cores_per_row() * kCorePitch,
              kCore, kCore,
              is_progress ? kProgress
              : is_ours   ? kJob
                          : kForeign,
              "none",
              "CPUs " + to_text(core.cpus) +
                  (is_progress ? ": progress threads"
                   : is_ours   ? ": the job"
                               : ": not this job's"));
      ++index;
    }
  }

  void card(Svg& svg, double x, double y, double width, const char* colour, const std::string& left,
            const std::string& right, const std::string& tip) const {
    svg.box(x, y, width, kCard, colour, "none", tip);
    const std::size_t room = static_cast<std::size_t>((width - 16) / 6.6);
    svg.text(x + 8, y + 17, left, "start", 12, "#fff");
    const std::size_t rest = room > left.size() + 2 ? room - left.size() - 2 : 1;
    svg.text(x + width - 8, y + 17, shortened(right, rest), "end", 11, "#fff");
  }

  void draw_side(Svg& svg, const Side& side, double x, double y, double height) const {
    svg.box(x, y, kColumn, height, "#f6f7f9", "#c9ced6");
    svg.text(x + kPad, y + 20,
             side.node != nullptr ? "NUMA node " + std::to_string(side.node->id) : "Place unknown",
             "start", 13);
    if (side.node != nullptr) {
      svg.text(x + kColumn - kPad, y + 20, shortened("CPUs " + to_text(side.node->cpus), 30), "end",
               11, "#555");
    }
    draw_cores(svg, side, x + kPad, y + 32);
    const int rows = (side.cores + cores_per_row() - 1) / cores_per_row();
    double at = y + 46 + rows * kCorePitch;
    for (const Branch& branch : side.branches) {
      double left = x + kPad;
      double width = kColumn - 2 * kPad;
      if (!branch.switches.empty()) {
        const auto cards = static_cast<double>(branch.gpus.size() + branch.nics.size());
        std::string name = "PCIe switch";
        for (const std::string& port : branch.switches) {
          name += (port == branch.switches.front() ? " " : " > ") + port;
        }
        svg.box(left, at, width, cards * (kCard + 4) + 24, "#fff", "#888", name);
        svg.text(left + 8, at + 14, shortened(name, 50), "start", 10, "#555");
        at += 20;
        left += 8;
        width -= 16;
      }
      for (const Gpu* const gpu : branch.gpus) {
        const std::string model = gpu->model.empty() ? gpu->vendor : gpu->model;
        card(svg, left, at, width, kGpu, gpu->name, model,
             gpu->name + ": " + model + ", " + address_of(gpu->pci_path));
        at += kCard + 4;
      }
      for (const Nic* const nic : branch.nics) {
        const NicUse& use = view_.uses[static_cast<std::size_t>(nic - machine_.nics.data())];
        const std::string speed = speed_text(machine_, *nic);
        card(svg, left, at, width, use.is_used ? kUsed : kUnused, nic->name,
             !use.is_used && speed == "unknown" ? use.why
             : use.is_used                      ? (speed == "unknown" ? "speed unknown" : speed)
                                                : speed + ", " + use.why,
             nic->name + ": " + nic->driver + " " + nic->rdma + ", " +
                 address_of(pci_path_of(nic->pci_path)) + distances(*nic));
        at += kCard + 4;
      }
      at += branch.switches.empty() ? 4 : 10;
    }
  }

  std::string distances(const Nic& nic) const {
    std::string text;
    for (const Gpu& gpu : machine_.gpus) {
      text += "\n" + gpu.name + ": " + std::string(to_text(distance(place_of(nic), place_of(gpu))));
    }
    return text;
  }

  double draw_virtual(Svg& svg, double y, double width) const {
    std::string list;
    for (const Nic* const nic : virtual_nics(machine_)) {
      const NicUse& use = view_.uses[static_cast<std::size_t>(nic - machine_.nics.data())];
      std::string about = use.is_used ? "used" : "";
      if (!use.why.empty()) about += (about.empty() ? "" : ", ") + use.why;
      list += (list.empty() ? "" : "; ") + nic->name + " (" + about + ")";
    }
    if (list.empty()) return y;
    svg.text(kMargin, y + 14,
             shortened("Without hardware: " + list, static_cast<std::size_t>(width / 6.6)), "start",
             12, "#555");
    return y + 24;
  }

  const View& view_;
  const Machine& machine_;
  const std::vector<Side> sides_;
};

}  // namespace

std::string to_svg(const View& view) { return Drawing(view).write(); }

}  // namespace riffle::tools::topo

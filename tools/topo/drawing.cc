#include "tools/topo/drawing.h"

#include <algorithm>

#include "tools/draw/network.h"
#include "tools/draw/text.h"
#include "tools/fabric_summary.h"
#include "tools/numbers.h"
#include "tools/topo/layout.h"

namespace riffle::tools::topo {
using riffle::to_text;  // of lists of CPUs; the ones here would hide it

namespace {

constexpr double kMargin = 20, kColumn = 340, kPad = 12, kCard = 26, kCore = 9, kCorePitch = 12;
constexpr std::size_t kColumnsPerRow = 4;
constexpr Paint kGpu = Paint::kPurple, kUsed = Paint::kGreen, kUnused = Paint::kGrey;
constexpr Paint kProgress = Paint::kBlue, kJob = Paint::kSlate, kForeign = Paint::kPale;
using Anchor = TextStyle::Anchor;
using Shape = LegendEntry::Shape;

class Drawing {
 public:
  explicit Drawing(const View& view)
      : view_(view), machine_(view.machine), sides_(sides_of(machine_)) {}

  std::string write() {
    const std::size_t columns = std::clamp<std::size_t>(sides_.size(), 2, kColumnsPerRow);
    Svg svg(2 * kMargin + static_cast<double>(columns) * (kColumn + kPad) - kPad,
            "riffle topo: " + view_.name);
    double y = head(svg);
    for (std::size_t first = 0; first < sides_.size(); first += columns) {
      const std::size_t last = std::min(first + columns, sides_.size());
      double height = 0;
      for (std::size_t i = first; i < last; ++i) height = std::max(height, height_of(sides_[i]));
      for (std::size_t i = first; i < last; ++i) {
        const double x = kMargin + static_cast<double>(i - first) * (kColumn + kPad);
        draw_side(svg, sides_[i], x, y, height);
      }
      y += height + kPad;
    }
    y = draw_virtual(svg, y);
    if (view_.fabric) draw_fabric(svg, y + 16);
    return svg.document();
  }

 private:
  static int cores_per_row() { return static_cast<int>((kColumn - 2 * kPad) / kCorePitch); }

  static double height_of(const Side& side) {
    const int rows = (side.cores + cores_per_row() - 1) / cores_per_row();
    double height = 46 + rows * kCorePitch + 10;
    for (const Branch& branch : side.branches) {
      const auto cards = static_cast<double>(branch.gpus.size() + branch.nics.size());
      height += cards * (kCard + 4) + (branch.switches.empty() ? 4 : 34);
    }
    return height;
  }

  // Name, processors, what NCCL gets to see, and the legend; returns the y below.
  double head(Svg& svg) const {
    double y = draw_title(svg, view_.name, kMargin, 14, {.size = 18, .is_bold = true});
    std::string uses;
    for (const Device& d : view_.devices) {
      uses += (uses.empty() ? "" : "; ") + d.name + " = " + interfaces_of(d) + " (" +
              rate_text(d.speed_mbps) + ")";
    }
    y = draw_title(svg, uses.empty() ? "NCCL sees no device" : "NCCL sees " + uses, kMargin, y,
                   {.size = 13, .is_bold = true});
    std::string models;
    for (const Processor& p : machine_.processors) {
      if (!p.model.empty() && models.find(p.model) == std::string::npos) {
        models += (models.empty() ? "" : ", ") + p.model;
      }
    }
    y = draw_title(svg,
                   std::to_string(machine_.processors.size()) + " × " +
                       (models.empty() ? "processor" : models) + ", " +
                       counted(machine_.cores.size(), "core"),
                   kMargin, y, {.size = 12, .ink = Paint::kFaint});
    std::vector<LegendEntry> legend = {{Shape::kBox, kUsed, "NIC that Riffle uses"},
                                       {Shape::kBox, kUnused, "NIC left out"}};
    if (!machine_.gpus.empty()) legend.push_back({Shape::kBox, kGpu, "GPU"});
    legend.push_back({Shape::kBox, kJob, "core the job may use"});
    legend.push_back({Shape::kBox, kForeign, "other core"});
    if (!view_.placement.cpus.empty()) {
      legend.push_back({Shape::kBox, kProgress, "core of progress threads"});
    }
    return draw_legend(svg, legend, kMargin, y) + 6;
  }

  void draw_fabric(Svg& svg, double y) const {
    const Fabric& fabric = *view_.fabric;
    const NetworkDiagram diagram{&fabric, {}};
    y = draw_title(svg, "Network: " + view_.fabric_name, kMargin, y, {.size = 16, .is_bold = true});
    y = draw_title(svg,
                   counted(fabric.nodes.size(), "node") + ", " +
                       counted(fabric.racks.size(), "rack") + ", latency " + latency_text(fabric),
                   kMargin, y, {.size = 12, .ink = Paint::kFaint});
    y = draw_legend(svg, legend_of(diagram), kMargin, y) + 4;
    draw_network(svg, diagram, y);
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
              "CPUs " + to_text(core.cpus) +
                  (is_progress ? ": progress threads"
                   : is_ours   ? ": the job"
                               : ": not this job's"));
      ++index;
    }
  }

  void card(Svg& svg, double x, double y, double width, Paint paint, const std::string& left,
            const std::string& right, const std::string& tip) const {
    svg.box(x, y, width, kCard, paint, tip);
    const std::string name = shortened(left, width - 16, 12);
    svg.text(x + 8, y + 17, name, {.size = 12, .on = paint, .is_bold = true});
    const double room = width - 16 - 1.1 * text_width(name, 12) - 8;
    svg.text(x + width - 8, y + 17, shortened(right, room, 11),
             {.anchor = Anchor::kEnd, .size = 11, .on = paint});
  }

  void draw_side(Svg& svg, const Side& side, double x, double y, double height) const {
    svg.framed(x, y, kColumn, height, Paint::kArea, Paint::kEdge);
    svg.text(x + kPad, y + 20,
             side.node != nullptr ? "NUMA node " + std::to_string(side.node->id) : "Place unknown",
             {.size = 13, .on = Paint::kArea, .is_bold = true});
    if (side.node != nullptr) {
      svg.text(x + kColumn - kPad, y + 20,
               shortened("CPUs " + to_text(side.node->cpus), kColumn - 150, 11),
               {.anchor = Anchor::kEnd, .size = 11, .ink = Paint::kFaint, .on = Paint::kArea});
    }
    draw_cores(svg, side, x + kPad, y + 32);
    const int rows = (side.cores + cores_per_row() - 1) / cores_per_row();
    double at = y + 46 + rows * kCorePitch;
    for (const Branch& branch : side.branches) {
      at = draw_branch(svg, branch, x + kPad, at, kColumn - 2 * kPad);
    }
  }

  double draw_branch(Svg& svg, const Branch& branch, double left, double at, double width) const {
    if (!branch.switches.empty()) {
      const auto cards = static_cast<double>(branch.gpus.size() + branch.nics.size());
      std::string name = "PCIe switch";
      for (const std::string& port : branch.switches) {
        name += (port == branch.switches.front() ? " " : " > ") + port;
      }
      svg.framed(left, at, width, cards * (kCard + 4) + 26, Paint::kPage, Paint::kEdge, name);
      svg.text(left + 8, at + 15, shortened(name, width - 16, 10.5),
               {.size = 10.5, .ink = Paint::kFaint});
      at += 22;
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
      const NicUse& use = use_of(*nic);
      card(svg, left, at, width, use.is_used ? kUsed : kUnused, nic->name, about(*nic, use),
           nic->name + ": " + nic->driver + " " + nic->rdma + ", " +
               address_of(pci_path_of(nic->pci_path)) + distances(*nic));
      at += kCard + 4;
    }
    return at + (branch.switches.empty() ? 4 : 12);
  }

  const NicUse& use_of(const Nic& nic) const {
    return view_.uses[static_cast<std::size_t>(&nic - machine_.nics.data())];
  }

  std::string about(const Nic& nic, const NicUse& use) const {
    const std::string speed = speed_text(machine_, nic);
    if (use.is_used) return speed == "unknown" ? "speed unknown" : speed;
    return speed == "unknown" ? use.why : speed + ", " + use.why;
  }

  std::string distances(const Nic& nic) const {
    std::string text;
    for (const Gpu& gpu : machine_.gpus) {
      text += "\n" + gpu.name + ": " + std::string(to_text(distance(place_of(nic), place_of(gpu))));
    }
    return text;
  }

  double draw_virtual(Svg& svg, double y) const {
    std::string list;
    for (const Nic* const nic : virtual_nics(machine_)) {
      const NicUse& use = use_of(*nic);
      std::string words = use.is_used ? "used" : "";
      if (!use.why.empty()) words += (words.empty() ? "" : ", ") + use.why;
      list += (list.empty() ? "" : "; ") + nic->name + " (" + words + ")";
    }
    if (list.empty()) return y;
    return draw_title(svg, "Without hardware: " + list, kMargin, y,
                      {.size = 12, .ink = Paint::kFaint});
  }

  const View& view_;
  const Machine& machine_;
  const std::vector<Side> sides_;
};

}  // namespace

std::string to_svg(const View& view) { return Drawing(view).write(); }

}  // namespace riffle::tools::topo

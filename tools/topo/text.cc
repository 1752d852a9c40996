#include "tools/topo/text.h"

#include <algorithm>
#include <cstdio>

#include "tools/numbers.h"
#include "tools/topo/fabric_text.h"
#include "tools/topo/layout.h"

namespace riffle::tools::topo {
using riffle::to_text;  // of lists of CPUs; the ones here would hide it

namespace {

constexpr std::size_t kColumns = 80;
constexpr std::size_t kRoomForWhy = 11;  // behind a NIC in the tree; longer ones stand below

std::string padded(std::string text, std::size_t width) {
  if (text.size() > width) text = text.substr(0, width - 1) + "~";
  text.resize(width, ' ');
  return text;
}

// Columns that a text takes: colours take none.
std::size_t visible(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      i = std::min(text.find('m', i), text.size());
    } else {
      ++count;
    }
  }
  return count;
}

const NicUse& use_of(const View& view, const Nic& nic) {
  return view.uses[static_cast<std::size_t>(&nic - view.machine.nics.data())];
}

class Text {
 public:
  Text(const View& view, const Colours& colours)
      : view_(view), machine_(view.machine), c_(colours) {}

  std::string write() {
    header();
    for (const Side& side : sides_of(machine_)) side_lines(side);
    virtual_line();
    device_lines();
    thread_line();
    distance_lines();
    if (view_.fabric) out_ += "\n" + to_text(*view_.fabric, view_.fabric_name, c_);
    if (!view_.advice.empty()) out_ += "\n";
    for (const std::string& sentence : view_.advice) {
      wrapped(c_.yellow("note:") + " ", "      ", sentence);
    }
    return out_;
  }

 private:
  void line(const std::string& text) { out_ += text + "\n"; }

  // Words of `text` after `first`, further lines after `indent`.
  void wrapped(const std::string& first, const std::string& indent, const std::string& text) {
    out_ += first;
    std::size_t at = visible(first);
    std::size_t from = 0;
    bool is_first = true;
    while (from < text.size()) {
      const std::size_t end = std::min(text.find(' ', from), text.size());
      const std::string word = text.substr(from, end - from);
      if (!is_first && at + 1 + word.size() > kColumns) {
        out_ += "\n" + indent;
        at = indent.size();
        is_first = true;
      }
      out_ += (is_first ? "" : " ") + word;
      at += word.size() + (is_first ? 0 : 1);
      is_first = false;
      from = end + 1;
    }
    out_ += "\n";
  }

  void header() {
    const auto hardware = static_cast<std::size_t>(std::count_if(
        machine_.nics.begin(), machine_.nics.end(), [](const Nic& n) { return !n.is_virtual; }));
    wrapped(c_.bold(view_.name) + ": ", "  ",
            counted(machine_.processors.size(), "processor") + ", " +
                counted(machine_.cores.size(), "core") + ", " +
                counted(cpus_of(machine_).size(), "CPU") + ", " +
                counted(machine_.gpus.size(), "GPU") + ", " + counted(hardware, "NIC") +
                (view_.is_recorded ? "" : "; by " + machine_.source));
    std::string models;
    for (const Processor& p : machine_.processors) {
      if (!p.model.empty() && models.find(p.model) == std::string::npos) {
        models += (models.empty() ? "" : ", ") + p.model;
      }
    }
    if (!models.empty()) line("  " + c_.dim(models));
  }

  void side_lines(const Side& side) {
    if (side.node != nullptr) {
      std::string text = c_.bold("NUMA node " + std::to_string(side.node->id)) + ": CPUs " +
                         to_text(side.node->cpus) + " (" +
                         counted(static_cast<std::size_t>(side.cores), "core") + ")";
      if (side.node->memory_mib > 0) {
        text += ", " + std::to_string((side.node->memory_mib + 512) / 1024) + " GiB";
      }
      line(text);
    } else {
      line(c_.bold("Place unknown") + ":");
    }
    for (const Branch& branch : side.branches) {
      std::string indent = "  ";
      if (!branch.switches.empty()) {
        std::string path;
        for (const std::string& s : branch.switches) path += (path.empty() ? "" : " > ") + s;
        line(indent + c_.dim("PCIe switch " + path));
        indent += "  ";
      }
      for (const Gpu* const gpu : branch.gpus) gpu_line(indent, *gpu);
      for (const Nic* const nic : branch.nics) nic_line(indent, *nic);
    }
  }

  void gpu_line(const std::string& indent, const Gpu& gpu) {
    const std::string model = gpu.model.empty() ? gpu.vendor : gpu.model;
    line(indent + padded(gpu.name, 14) + padded(model, 39 - indent.size()) + "  " +
         address_of(gpu.pci_path));
  }

  void nic_line(const std::string& indent, const Nic& nic) {
    const NicUse& use = use_of(view_, nic);
    std::string driver = nic.driver.empty() ? "" : nic.driver;
    if (!nic.rdma.empty()) driver += " (" + nic.rdma + ")";
    std::string text = indent + padded(nic.name, 14) + padded(speed_text(machine_, nic), 13) +
                       padded(driver, 26 - indent.size()) + "  " +
                       padded(address_of(pci_path_of(nic.pci_path)), 14);
    text +=
        use.is_used ? c_.green("used") : c_.dim(use.why.size() <= kRoomForWhy ? use.why : "unused");
    while (text.back() == ' ') text.pop_back();
    line(text);
  }

  void virtual_line() {
    std::string list;
    for (const Nic* const nic : virtual_nics(machine_)) {
      const NicUse& use = use_of(view_, *nic);
      const auto speed = real_speed_mbps(machine_.nics, nic->name);
      std::string about = use.is_used ? "used" : "";
      if (!use.why.empty()) about += (about.empty() ? "" : ", ") + use.why;
      if (speed) about += ", " + rate_text(*speed);
      list += (list.empty() ? "" : "; ") + nic->name + " (" + about + ")";
    }
    if (!list.empty()) wrapped(c_.bold("Without hardware") + ": ", "  ", list);
  }

  void device_lines() {
    out_ += "\n";
    for (const Device& device : view_.devices) {
      wrapped(c_.bold("Riffle uses") + " ", "  ",
              interfaces_of(device) + " as NCCL device " + device.name + ", " +
                  rate_text(device.speed_mbps) +
                  (device.pci_path.empty()
                       ? ""
                       : ", placed at " + address_of(pci_path_of(device.pci_path))));
    }
    wrapped("  because: ", "    ", view_.devices_why);
    std::string unused;
    for (std::size_t i = 0; i < view_.uses.size(); ++i) {
      const NicUse& use = view_.uses[i];
      if (use.is_used || machine_.nics[i].is_virtual || use.why.size() <= kRoomForWhy) continue;
      unused += (unused.empty() ? "" : ", ") + machine_.nics[i].name + " (" + use.why + ")";
    }
    if (!unused.empty()) wrapped("  not used: ", "    ", unused);
  }

  void thread_line() {
    if (view_.placement.cpus.empty()) {
      wrapped(c_.bold("Progress threads") + " ", "  ",
              "run where the job does: " + view_.placement.why);
    } else {
      wrapped(c_.bold("Progress threads") + " ", "  ",
              "run on CPUs " + to_text(view_.placement.cpus) + ": " + view_.placement.why);
    }
  }

  void distance_lines() {
    std::vector<const Nic*> rows;
    for (const Nic& nic : machine_.nics) {
      if (!nic.is_virtual) rows.push_back(&nic);
    }
    if (rows.empty() || machine_.gpus.empty()) return;
    constexpr std::size_t kPerBlock = 10;
    for (std::size_t first = 0; first < machine_.gpus.size(); first += kPerBlock) {
      const std::size_t last = std::min(first + kPerBlock, machine_.gpus.size());
      std::string head = "\n" + c_.bold(padded("NIC to GPU", 14));
      for (std::size_t g = first; g < last; ++g) head += padded(machine_.gpus[g].name, 6);
      line(head.substr(0, head.find_last_not_of(' ') + 1));
      for (const Nic* const nic : rows) {
        std::string row = padded(nic->name, 14);
        for (std::size_t g = first; g < last; ++g) {
          const Distance d = distance(place_of(*nic), place_of(machine_.gpus[g]));
          row += padded(std::string(riffle::to_text(d)), 6);
        }
        line(row.substr(0, row.find_last_not_of(' ') + 1));
      }
    }
    line(c_.dim("  PIX same PCIe switch, PXB several, PHB through the processor, NODE across"));
    line(c_.dim("  its host bridges, SYS another NUMA node, ? unknown"));
  }

  const View& view_;
  const Machine& machine_;
  const Colours& c_;
  std::string out_;
};

}  // namespace

std::string to_text(const View& view, const Colours& colours) {
  return Text(view, colours).write();
}

}  // namespace riffle::tools::topo

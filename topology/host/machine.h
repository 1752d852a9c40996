// One machine as data: processors, NUMA nodes, NICs, GPUs and the PCI ways between them. Where it
// comes from is machine_read.h's business; it is the same whether hwloc or a recorded file told it,
// and flat where neither did. A value, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "topology/host/cpu_list.h"
#include "topology/host/nics.h"
#include "topology/host/pci.h"

namespace riffle {

struct Processor {  // one per socket
  int id = 0;
  std::string vendor;  // as CPUID says, e.g. "GenuineIntel"; empty where there is none (ARM)
  std::string model;   // e.g. "Intel(R) Xeon(R) Platinum 8480C"; may be empty
  int family = -1;     // -1 if unknown
  int model_number = -1;
};

struct NumaNode {
  int id = 0;  // the kernel's number
  int processor = -1;
  CpuList cpus;                 // none for memory without processors (of a GPU)
  std::int64_t memory_mib = 0;  // 0 if unknown
};

struct Core {
  int processor = -1;
  std::optional<int> numa_node;
  CpuList cpus;  // its hardware threads
};

struct Gpu {
  std::string name;                   // "gpu0", ... in the order of PCI addresses
  std::vector<std::string> os_names;  // "card1", ...; of recorded machines "cuda0", "nvml0" too
  std::string vendor, model;          // e.g. "NVIDIA", "H100"; the model may be empty
  PciPath pci_path;                   // empty if unknown
  std::optional<int> numa_node;
};

struct Machine {
  std::string source;        // "hwloc, API 2.8", the file, or "flat machine"
  bool is_flat = false;      // nothing is known of it but CPUs and NICs
  std::string architecture;  // as uname says: "x86_64", "aarch64"; may be empty
  std::vector<Processor> processors;
  std::vector<NumaNode> numa_nodes;
  std::vector<Core> cores;  // by processor and CPU number
  std::vector<Nic> nics;    // by name
  std::vector<Gpu> gpus;
  std::vector<PciFunction> pci;    // NICs, GPUs and the bridges above them, by address
  std::vector<std::string> notes;  // what a person should know: what is missing, odd or guessed
};

const Nic* find_nic(const Machine& machine, const std::string& name);
const PciFunction* find_pci(const Machine& machine, const std::string& address);
const NumaNode* find_numa_node(const Machine& machine, int id);

CpuList cpus_of(const Machine& machine);

Place place_of(const Nic& nic);
Place place_of(const Gpu& gpu);

// Puts lists into their order, numbers GPUs, drops what contradicts itself (a NUMA node that does
// not exist) with a note. Every reader ends with it.
void tidy(Machine& machine);

// Whether NCCL could use it: a display or processing function of a vendor of GPUs, not the VGA chip
// of a board's management controller.
bool is_compute_gpu(const PciFunction& function);
std::string gpu_vendor_name(int pci_vendor);

}  // namespace riffle

// `riffle order`: in which order hosts should get their ranks, for what stays on NCCL's own rings.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "tools/command.h"
#include "tools/explain/record_lines.h"
#include "tools/fabric_source.h"
#include "tools/order/order_view.h"
#include "tools/output_file.h"
#include "tools/size_option.h"
#include "tools/terminal/patience.h"

namespace riffle::tools {
namespace {

struct OrderArguments {
  FabricSource source;
  std::vector<std::string> record;
  OrderOptions options;
  std::string format = "text", output;
};

// What the communicator of most hosts, of several the latest, last took its network to be.
Result<Fabric> recorded_fabric(const std::vector<std::string>& paths) {
  const auto job = read_records(paths);
  if (!job) return job.status();
  const PlanEvent* best = nullptr;
  for (const auto& [key, comm] : job->comms) {
    for (const PlanEvent& plan : plans_of(comm)) {
      if (!plan.fabric || plan.is_nominal) continue;
      const int more = best == nullptr ? 1 : plan.fabric->size() - best->fabric->size();
      if (more > 0 || (more == 0 && plan.t >= best->t)) best = &plan;
    }
  }
  if (best != nullptr) return *best->fabric;
  return invalid_argument(paths.front() +
                          ": no plan in the record says what the rates of its network are; they "
                          "are in the record of rank 0's node");
}

Result<Fabric> fabric_for(const OrderArguments& arguments) {
  if (arguments.record.empty()) {
    if (arguments.source.file.empty() && arguments.source.profile.empty()) {
      return invalid_argument("order needs --fabric, --profile or --record, one of them");
    }
    return read_fabric(arguments.source, "order");
  }
  return patiently("reading records", [&] { return recorded_fabric(arguments.record); });
}

int run(const OrderArguments& arguments) {
  const auto fabric = fabric_for(arguments);
  if (!fabric) return report(fabric.status());
  const auto view =
      patiently("trying orders", [&] { return view_order(*fabric, arguments.options); });
  if (!view) {
    return report(invalid_argument("--group: " + view.status().message()));
  }
  const auto text = written(*view, arguments.format);
  if (!text) return report(text.status());
  if (arguments.output.empty()) {
    // What a launcher reads stays alone on stdout.
    if (arguments.format != "text" && arguments.format != "json") {
      std::fprintf(stderr, "riffle order: %s\n", view->headline().c_str());
    }
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  if (Status s = write_file(arguments.output, *text); !s) return report(s);
  std::printf("%s\n", view->headline().c_str());
  return 0;
}

}  // namespace

void add_order(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<OrderArguments>();
  o->source.only_known = true;
  CLI::App* sub = app.add_subcommand(
      "order", "The order of hosts in which NCCL's own rings cross racks and slow links least");
  add_options(*sub, o->source);
  auto* record = sub->add_option("--record", o->record,
                                 "Record of a job instead, for the network that the job found");
  for (const char* other : {"--fabric", "--nodes", "--profile"}) {
    record->excludes(sub->get_option(other));
  }
  sub->add_option("--group", o->options.group,
                  "So many consecutive hosts work together, e.g. the stages of a pipeline")
      ->check(CLI::Range(1, kMaxNodes))
      ->capture_default_str();
  add_bytes(*sub, o->options.bytes, "Size of the all-reduce that times are of");
  sub->add_option("--slots", o->options.slots, "Ranks per host")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  sub->add_option("--format", o->format, "What to write the order as")
      ->check(CLI::IsMember(kOrderFormats))
      ->capture_default_str();
  sub->add_option("-o,--output", o->output, "Write it to this file");
  sub->footer(
      "All-reduces in Riffle's groups do not depend on the order; reduce-scatter, all-gather and\n"
      "send/recv run on NCCL's rings and trees, which go by rank. Times are those of all-reduces;\n"
      "a reduce-scatter or an all-gather takes half.\n"
      "Examples:\n"
      "  riffle order --profile racks8\n"
      "  riffle order --record /shared/run1             of a job that ran with RIFFLE_RECORD\n"
      "  riffle probe --fabric net.toml $(cat hosts) && riffle order --fabric net.toml\n"
      "  riffle order --fabric net.toml --slots 8 --format hostfile -o hosts\n"
      "      mpirun --hostfile hosts --map-by slot ...\n"
      "  riffle order --fabric net.toml --slots 8 --format slurm -o hosts\n"
      "      SLURM_HOSTFILE=hosts srun --distribution=arbitrary --ntasks=64 ...\n"
      "  riffle order --fabric net.toml --format torchrun -o ranks      then, on every host:\n"
      "      torchrun $(grep \"^$(hostname) \" ranks | cut -d' ' -f2-) --nproc-per-node=8 ...\n"
      "Exit code: 0 written, 1 the file cannot be written, 2 a bad file or option.");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools

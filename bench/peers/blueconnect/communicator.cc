#include "bench/peers/blueconnect/communicator.h"

#include <algorithm>
#include <utility>

#include "lab/nccl_host/tables/plugin_call.h"

namespace riffle::bench {
namespace {

// Its links are those of one channel.
int channel_of(Kind kind) { return static_cast<int>(kind); }

int nodes_in(const Racks& racks) {
  std::size_t nodes = 0;
  for (const auto& rack : racks) nodes += rack.size();
  return static_cast<int>(nodes);
}

}  // namespace

BlueConnect::BlueConnect(host::PluginLibrary& library, int node, Racks racks,
                         const BlueConnectOptions& options)
    : library_(library),
      node_(node),
      racks_(std::move(racks)),
      options_(options),
      profiler_(nullptr, 0, nodes_in(racks_), node) {}

BlueConnect::~BlueConnect() { (void)abort(); }

Result<std::unique_ptr<BlueConnect>> BlueConnect::connect(host::PluginLibrary& library,
                                                          host::Bootstrap& bootstrap, Racks racks,
                                                          const BlueConnectOptions& options) {
  std::unique_ptr<BlueConnect> made(
      new BlueConnect(library, bootstrap.rank(), std::move(racks), options));
  if (Status s = made->connect_links(bootstrap); !s) return s;
  made->progress_ = std::make_unique<host::Progress>(nullptr, made->profiler_, options.progress);
  if (Status s = bootstrap.barrier(); !s) return s;
  return made;
}

Status BlueConnect::connect_links(host::Bootstrap& bootstrap) {
  host::NetTable& net = library_.net();
  if (Status s = host::plugin_status(net.init(0, &context_), "NET init"); !s) return s;
  is_up_ = true;
  int devices = 0;
  if (Status s = host::plugin_status(net.devices(&devices), "NET devices"); !s) return s;
  if (devices < 1) return system_error("the plugin reports no NET device");
  net_ = std::make_unique<host::NetFabric>(net, context_, options_.buffer_bytes);
  std::vector<host::Endpoint> sends, receives;
  for (const Kind kind : kKinds) {
    const Neighbours neighbours = blueconnect_neighbours(racks_, node_, kind);
    for (const int peer : neighbours.send_to) sends.push_back({channel_of(kind), peer});
    for (const int peer : neighbours.receive_from) receives.push_back({channel_of(kind), peer});
  }
  return net_->connect(bootstrap, sends, receives, options_.deadline_ms);
}

std::size_t BlueConnect::chunk_elements(DataType type) const {
  const std::size_t step = options_.buffer_bytes / host::kSteps / size_of(type);
  return std::min(options_.chunk_bytes / size_of(type), largest_chunk(racks_, step));
}

void BlueConnect::add_chunk(host::LaunchBuilder& builder, const Range& chunk,
                            const host::Program& like) const {
  std::shared_ptr<bool> before;
  for (Stage& stage : blueconnect_stages(racks_, node_, chunk, size_of(like.type))) {
    host::Program program = like;
    if (stage.reads_result) program.input = like.output;
    program.primitives = std::move(stage.primitives);
    program.after = before;
    program.done = before = std::make_shared<bool>(false);
    const int channel = channel_of(stage.kind);
    std::vector<host::NetLink*> from, to;
    if (stage.from >= 0) from = {&net_->receive_link({channel, stage.from})};
    if (stage.to >= 0) to = {&net_->send_link({channel, stage.to})};
    builder.add_program(channel, std::move(program), from, to);
  }
}

Status BlueConnect::all_reduce(const void* send, void* receive, std::size_t count, DataType type,
                               host::Op op) {
  if (count == 0) return Status::ok();
  host::LaunchBuilder builder(*net_, nullptr, node_,
                              {nodes_in(racks_), static_cast<int>(std::size(kKinds)),
                               options_.buffer_bytes, host::Release::k2_30});
  host::Program like;
  like.step_bytes = options_.buffer_bytes / host::kSteps;
  like.input = send;
  like.output = receive;
  like.type = type;
  like.op = op;
  for (std::size_t at = 0, n = 0; at < count; at += n) {
    n = std::min(chunk_elements(type), count - at);
    add_chunk(builder, {at, n}, like);
  }
  progress_->submit(builder.take());
  const bool done = progress_->wait(options_.deadline_ms, false);
  if (Status s = host::plugin_status(progress_->error(), "transfer (isend, irecv or test)"); !s) {
    return s;
  }
  if (done) return Status::ok();
  return timeout_error("not complete after " + std::to_string(options_.deadline_ms) + " ms");
}

Status BlueConnect::destroy() {
  if (progress_ != nullptr && !progress_->wait(options_.deadline_ms, true)) {
    const Status ended = abort();
    return ended ? timeout_error("the proxies are not done at the end") : ended;
  }
  return abort();
}

Status BlueConnect::abort() {
  if (!std::exchange(is_up_, false)) return Status::ok();
  if (progress_ != nullptr) progress_->stop();
  const Status closed = net_ != nullptr ? net_->disconnect() : Status::ok();
  const Status ended = host::plugin_status(library_.net().finalize(context_), "NET finalize");
  return closed ? ended : closed;
}

}  // namespace riffle::bench

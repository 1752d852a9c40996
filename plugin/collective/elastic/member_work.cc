#include "plugin/collective/elastic/member_work.h"

#include <utility>

#include "plugin/transport/base/mesh.h"

namespace riffle {

MemberWork::MemberWork(Mesh* mesh, ControlChannel* control, TimerService* timers,
                       Background* background, const Options& options, ReplanHooks hooks,
                       const Violation& violation)
    : engine_(mesh, options.parts, options.engine, violation),
      sparse_(options.sparse ? std::make_unique<SparseRunner>(mesh, *options.sparse, violation)
                             : nullptr),
      replanner_(mesh, control, &engine_, timers, background, options.replan, std::move(hooks)) {}

Status MemberWork::install(const PlanSet& plans, bool knows_lengths) {
  engine_.use_lengths(knows_lengths);
  return engine_.install(plans);
}

void MemberWork::submit(Operation* operation) {
  engine_.submit(operation);
  replanner_.operation_posted();
}

void MemberWork::submit(SparseSegment* segment, Operation* operation) {
  sparse_->submit(segment, operation);
  replanner_.operation_posted();
}

Result<std::byte*> MemberWork::get_receive_buffer(int peer, const FrameHeader& header) {
  if (header.type != FrameType::kSparse) return engine_.get_receive_buffer(peer, header);
  if (sparse_) return sparse_->get_receive_buffer(peer, header);
  return remote_error("a sparse message, where no sparse mode is wanted");
}

void MemberWork::arrived(int peer, const FrameHeader& header, std::byte* payload) {
  if (header.type == FrameType::kSparse) {
    sparse_->arrived(peer, header, payload);
  } else {
    engine_.arrived(peer, header, payload);
  }
}

void MemberWork::sent(int /*peer*/, std::uint64_t cookie) {
  if ((cookie & kSparseCookie) != 0) {
    if (sparse_) sparse_->sent(cookie);
  } else {
    engine_.sent(cookie);
  }
}

void MemberWork::fail() {
  replanner_.stop();
  engine_.fail();
  if (sparse_) sparse_->fail();
}

}  // namespace riffle

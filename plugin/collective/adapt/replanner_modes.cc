// Replanner, node 0: relaxed modes, agreed on with the calls of the job.
#include <memory>
#include <utility>
#include <vector>

#include "plugin/collective/adapt/replanner.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {

void Replanner::make_agreement() {
  SyncAgreement::Hooks hooks;
  hooks.send = [this](int peer, std::uint32_t kind, std::vector<std::uint8_t> message) {
    channel_->send(peer, FrameType::kControl, kind, std::move(message));
  };
  hooks.number = mesh_->number_of(mesh_->rank());
  hooks.now_ns = [this] { return mesh_->now_ns(); };
  hooks.chunk_bytes = [this] { return relaxed_chunk_bytes(); };
  hooks.sparse_order = [this]() -> Result<SparseOrder> {
    return hooks_.sparse_order(rates_->fabric(), *plans_);
  };
  hooks.changed = [this](const ModeChange& change) { mode_changed(change); };
  sync_ = std::make_unique<SyncAgreement>(
      mesh_->rank(), mesh_->size(),
      SyncAgreementOptions{options_.mode, options_.warmup_steps, options_.least_horizon_ns},
      hooks_.participant, background_, std::move(hooks));
}

std::uint64_t Replanner::relaxed_chunk_bytes() const { return plans_->relaxed.chunk_bytes; }

void Replanner::mode_changed(const ModeChange& change) {
  ReplanEvent e = event(ReplanEvent::Kind::kMode);
  e.cause = change.cause;
  e.mode = name_of(change.mode);
  e.first_seq = change.first_call;
  tell(e);
}

}  // namespace riffle

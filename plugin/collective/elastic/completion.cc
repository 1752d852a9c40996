#include "plugin/collective/elastic/completion.h"

#include <algorithm>
#include <utility>

#include "plugin/collective/base/frames.h"
#include "plugin/transport/base/mesh.h"

namespace riffle {

Completion::Completion(Mesh* mesh, AllHave all_have, bool trusts_root)
    : mesh_(mesh), all_have_(std::move(all_have)), trusts_root_(trusts_root) {
  for (int i = 0; i < kFanOut; ++i) {
    const int child = mesh->rank() * kFanOut + 1 + i;
    if (child < mesh->size()) children_.push_back(child);
  }
  children_have_.assign(children_.size(), 0);
}

bool Completion::is_root() const { return mesh_->rank() == 0; }
int Completion::parent() const { return (mesh_->rank() - 1) / kFanOut; }

void Completion::begin(std::uint64_t below) {
  finished_ = told_ = below;
  std::fill(children_have_.begin(), children_have_.end(), below);
}

void Completion::finished(std::uint64_t below) {
  finished_ = below;
  tell();
}

void Completion::subtree_has(int child, std::uint64_t below) {
  const auto at = std::find(children_.begin(), children_.end(), child);
  if (at == children_.end()) return;
  std::uint64_t& known = children_have_[static_cast<std::size_t>(at - children_.begin())];
  known = std::max(known, below);
  tell();
}

void Completion::tell() {
  std::uint64_t below = finished_;
  for (const std::uint64_t child : children_have_) {
    if (!trusts_root_) below = std::min(below, child);
  }
  if (is_root()) {
    all_have_(below);
  } else if (below > told_) {
    told_ = below;
    send(parent(), DoneFrame::kUp, below);
  }
}

void Completion::tell_all_have(std::uint64_t below) {
  for (const int child : children_) send(child, DoneFrame::kDown, below);
}

void Completion::send(int place, DoneFrame::Way way, std::uint64_t below) {
  DoneFrame frame;
  frame.below = below;
  frame.way = way;
  mesh_->send(place, header_of(frame), {}, kNoCookie, kUrgent);
}

}  // namespace riffle

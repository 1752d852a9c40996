// Completion: which operations all nodes of a term have finished. Each node tells its parent in a
// tree (kFanOut children) below which number its subtree has all results, the root tells all nodes
// below which number all have: one frame without payload (kDone) for as many operations as are
// done, ahead of all data.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plugin/collective/elastic/done_frame.h"
#include "plugin/transport/base/frame_sink.h"

namespace riffle {

class Mesh;

class Completion {
 public:
  static constexpr int kFanOut = 8;
  // Root: all nodes have the results of all operations below; may come again for the same.
  using AllHave = std::function<void(std::uint64_t below)>;
  // `trusts_root`: tests only, to see that they would notice; the root does not wait for the
  // others.
  Completion(Mesh* mesh, AllHave all_have, bool trusts_root);

  bool is_root() const;
  int parent() const;
  const std::vector<int>& children() const { return children_; }

  // All nodes have all results below.
  void begin(std::uint64_t below);
  // This node has them.
  void finished(std::uint64_t below);
  // To the children: all have them.
  void tell_all_have(std::uint64_t below);
  // What a DoneFrame::kUp of a child says.
  void subtree_has(int child, std::uint64_t below);

 private:
  void tell();
  void send(int place, DoneFrame::Way way, std::uint64_t below);

  Mesh* const mesh_;
  const AllHave all_have_;
  const bool trusts_root_;
  std::vector<int> children_;
  std::vector<std::uint64_t> children_have_;  // their subtrees, all results below
  std::uint64_t finished_ = 0;                // here
  std::uint64_t told_ = 0;                    // to the parent
};

}  // namespace riffle

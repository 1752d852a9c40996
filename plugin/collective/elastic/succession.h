// Succession: the term that is to follow after a loss, from when this node accepts it. It may begin
// when every frame of earlier terms between this node and its members has arrived here, and what is
// this node's has left its memory.
//
// Threads: the mesh's owner.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "plugin/collective/elastic/recovery_messages.h"
#include "plugin/collective/elastic/term.h"

namespace riffle {

class Succession {
 public:
  // `traffic` must outlive this.
  explicit Succession(const TermTraffic& traffic) : traffic_(traffic) {}

  // Another term is to follow in place of the one that was accepted, if any.
  void supersede();
  // `frames`: those of all terms that have been sent here, per member of `term`. `drained` is
  // called once, now or within check(), unless it is superseded before.
  void accept(std::unique_ptr<Term> term, RecoveryOrder order, std::vector<std::uint64_t> frames,
              std::function<void()> drained);
  // A frame has arrived or left.
  void check();

  // Null: none is accepted.
  const Term* term() const { return next_.get(); }
  // The orders that came with the term that was accepted last.
  const RecoveryOrder& order() const { return *order_; }
  // The term begins.
  std::unique_ptr<Term> take() { return std::move(next_); }

 private:
  const TermTraffic& traffic_;
  std::unique_ptr<Term> next_;
  std::vector<std::unique_ptr<Term>> former_;  // superseded; frames of theirs may be under way
  std::optional<RecoveryOrder> order_;
  std::vector<std::uint64_t> frames_;
  std::function<void()> drained_;
};

}  // namespace riffle

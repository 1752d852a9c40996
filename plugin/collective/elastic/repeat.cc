#include "plugin/collective/elastic/repeat.h"

#include <cstring>

#include "plugin/collective/sparse/sparse_segment.h"
#include "plugin/kernels/rescale.h"

namespace riffle {
namespace {

DataType type_of(sparse::Element element) {
  switch (element) {
    case sparse::Element::kFloat16:
      return DataType::kFloat16;
    case sparse::Element::kBfloat16:
      return DataType::kBfloat16;
    case sparse::Element::kFloat32:
      break;
  }
  return DataType::kFloat32;
}

}  // namespace

bool is_repeatable(const Operation& o) {
  if (o.is_dry || o.is_average) return true;
  if (const SparseSegment* s = o.sparse) return s->send != s->recv || s->kept != nullptr;
  return o.send != o.recv || o.kept != nullptr;
}

std::string objection(const Operation& o, std::size_t lost, bool rescales) {
  if (lost == 0) return "";
  const std::string without = " without the " + std::to_string(lost) + " lost nodes: ";
  if (o.collective != Collective::kAllReduce) {
    return without + "only all-reduces can go on, and this is a reduce-scatter or an all-gather";
  }
  if (o.op == ReduceOp::kMin || o.op == ReduceOp::kMax || !rescales) return "";
  if (o.op == ReduceOp::kSum && is_floating(o.type)) return "";
  return without + name_of(o.op) + " of " + name_of(o.type) +
         " cannot be scaled to stand for all nodes (RIFFLE_RESCALE=0 takes the survivors' result)";
}

void restore_input(const Operation& o) {
  if (const SparseSegment* s = o.sparse) {
    if (s->kept != nullptr) std::memcpy(s->recv, s->kept, s->whole * sparse::size_of(s->element));
  } else if (o.kept != nullptr) {
    std::memcpy(o.recv, o.kept, o.count * size_of(o.type));
  }
}

void scale(const Operation& inner, const Operation& user, double factor) {
  if (user.is_average) return;
  if (const SparseSegment* s = user.sparse) {
    const bool is_sparse = s->outcome == SparseSegment::Outcome::kSparse;
    rescale(s->recv, is_sparse ? s->elements : s->whole, type_of(s->element), factor);
  } else if (inner.op == ReduceOp::kSum && !inner.is_dry) {
    rescale(inner.recv, inner.length, inner.type, factor);
  }
}

}  // namespace riffle

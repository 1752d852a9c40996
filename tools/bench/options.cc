#include "tools/bench/options.h"

#include <cstdlib>

#include "plugin/entry/sync_settings.h"

namespace riffle::tools {

using bench::Question;

namespace {

constexpr int kRelaxedWarmup = 14;

Result<std::size_t> parse_size(const std::string& text, std::size_t element) {
  std::size_t used = 0;
  unsigned long long value = 0;
  try {
    value = std::stoull(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const int shift = unit == "" ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (used == 0 || text[0] == '-' || shift < 0 || value == 0 || value > (8ULL << 30) >> shift ||
      (value << shift) % element != 0) {
    return invalid_argument("--sizes " + text +
                            ": accepted are 1 to 8G bytes, with K, M or G, in " +
                            "whole elements of " + std::to_string(element) + " bytes");
  }
  return static_cast<std::size_t>(value << shift);
}

}  // namespace

Result<std::vector<Question>> questions(const BenchOptions& options) {
  Question question;
  bool known_type = false, known_op = false;
  std::string types, ops;
  for (int t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    types += std::string(t ? ", " : "") + name_of(type);
    if (options.type == name_of(type)) {
      question.type = type;
      known_type = true;
    }
  }
  for (int o = 0; o < kReduceOps; ++o) {
    const auto op = static_cast<ReduceOp>(o);
    ops += std::string(o ? ", " : "") + name_of(op);
    if (options.op == name_of(op)) {
      question.op = static_cast<host::Op>(op);
      known_op = true;
    }
  }
  if (!known_type) return invalid_argument("--dtype " + options.type + ": accepted are " + types);
  if (!known_op) return invalid_argument("--redop " + options.op + ": accepted are " + ops);
  if (question.op == host::Op::kProd && size_of(question.type) < 4) {
    return invalid_argument("--redop prod needs a type of 4 or 8 bytes to be checked exactly");
  }
  question.iters = options.iters;
  question.warmup = options.warmup;
  if ((options.sync != "exact") + options.is_sparse() + options.is_narrow() > 1) {
    return invalid_argument("--sync, --sparse and --wire: one of them");
  }
  if (options.is_sparse() && !sparse_wish(options.sparse).wrong.empty()) {
    return invalid_argument("--sparse " + options.sparse + ": " +
                            sparse_wish(options.sparse).wrong);
  }
  if (options.is_relaxed()) {
    if (question.type != DataType::kFloat32 || question.op != host::Op::kSum) {
      return invalid_argument(options.mode() + " takes float sums");
    }
    // The first steps teach riffle the calls, are exact, and let the nodes agree.
    if (question.warmup == BenchOptions().warmup) question.warmup = kRelaxedWarmup;
  }
  std::vector<Question> all;
  for (const std::string& size : options.sizes) {
    const auto bytes = parse_size(size, size_of(question.type));
    if (!bytes) return bytes.status();
    question.bytes = bytes.value();
    if (options.is_relaxed() && question.bytes < 1 << 20) {
      return invalid_argument(options.mode() + " takes --sizes from 1M up");
    }
    all.push_back(question);
  }
  return all;
}

Question question_to(const bench::Peer& peer, Question question, const BenchOptions& options) {
  question.is_relaxed = peer.name == "riffle" && options.is_relaxed();
  question.is_background = question.is_relaxed && options.sync == "shadow_sync";
  question.is_sparse = question.is_relaxed && options.is_sparse();
  if (question.is_relaxed && options.is_narrow()) {
    question.rounding = options.wire == "bf16" ? 0x1p-8 : 0x1p-4;
  }
  // The command asks for no ramp; the caller's environment may.
  const char* ramp = std::getenv("RIFFLE_SPARSE_RAMP");
  const bool is_whole = ramp == nullptr || std::string(ramp) == "0";
  if (question.is_sparse && is_whole) question.density = sparse_wish(options.sparse).density;
  return question;
}

}  // namespace riffle::tools

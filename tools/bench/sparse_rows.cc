#include <filesystem>

#include "tools/bench/rows.h"

namespace riffle::tools {

using bench::Question;
using bench::Row;
using bench::Session;

namespace {

constexpr int kSparseIters = 20;

bench::SparseQuestion sparse_question(const BenchOptions& options, const Question& question) {
  bench::SparseQuestion sparse;
  sparse.schemes = options.sparse_peers;
  sparse.bytes = question.bytes;
  sparse.density = options.density;
  sparse.teams = options.teams;
  sparse.iters = options.has_iters ? options.iters : kSparseIters;
  if (!options.gradients.empty()) {
    sparse.gradients = std::filesystem::absolute(options.gradients).string();
  }
  return sparse;
}

}  // namespace

Status check_sparse(const BenchOptions& options, const std::vector<Question>& all,
                    const cluster::Profile& profile) {
  if (options.sparse_peers.empty()) return Status::ok();
  if (options.type != "float" || options.op != "sum" || options.is_relaxed()) {
    return invalid_argument("--sparse-peers takes exact float sums");
  }
  for (const Question& question : all) {
    if (Status s = validate(sparse_question(options, question), profile); !s) return s;
  }
  return Status::ok();
}

Status run_sparse(Session& session, const BenchOptions& options, const std::vector<Question>& all,
                  BenchFindings& findings) {
  const Progress progress;
  for (const Question& question : all) {
    bench::SparseQuestion sparse = sparse_question(options, question);
    for (const Row& row : findings.rows) {
      if (row.peer == "riffle" && row.question.bytes == question.bytes) {
        sparse.dense_time_us = row.time_us;
      }
    }
    const auto rows =
        bench::compare(session, sparse, [&](const std::string& text) { progress.show(text); });
    progress.show("");
    if (!rows) return rows.status();
    std::fputs(bench::sparse_head(sparse, rows->front()).c_str(), stdout);
    for (const bench::SparseRow& row : *rows) {
      std::fputs(bench::sparse_line(row).c_str(), stdout);
      findings.failed |= row.wrong > 0;
      findings.sparse.push_back(row);
    }
    std::fflush(stdout);
  }
  return Status::ok();
}

}  // namespace riffle::tools

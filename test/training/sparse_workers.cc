#include "test/training/sparse_workers.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sparse/exchange.h"

namespace sparse = riffle::sparse;

namespace {

std::string last_sparse_error;

riffle::Result<sparse::ResidualPolicy> policy_of(const std::string& name) {
  if (name == "global") return sparse::ResidualPolicy::kGlobal;
  if (name == "partial") return sparse::ResidualPolicy::kPartial;
  if (name == "local") return sparse::ResidualPolicy::kLocal;
  if (name == "ef21") return sparse::ResidualPolicy::kEf21;
  return riffle::invalid_argument("residual \"" + name +
                                  "\": accepted are global, partial, local and ef21");
}

// As the plugin has it (sparse_run.cc): thresholds are reused.
sparse::ExchangeOptions options_of(sparse::ResidualPolicy residual) {
  return {.selection = sparse::Selection::kReuse, .residual = residual};
}

}  // namespace

struct riffle_sparse_workers {
  sparse::Shape shape;
  std::vector<sparse::Exchange> exchanges;
  std::vector<sparse::ChunkState> states;
  std::vector<std::vector<std::uint8_t>> messages;
  std::uint32_t sequence = 0;

  riffle_sparse_workers(const sparse::Shape& s, sparse::ResidualPolicy residual) : shape(s) {
    const sparse::Layout layout(shape);
    for (int p = 0; p < shape.workers; ++p) {
      exchanges.emplace_back(layout, options_of(residual), p);
      states.emplace_back(layout, p, residual);
    }
    messages.resize(exchanges.size());
  }

  void set_density(double density) {
    shape.density = density;
    const sparse::Layout layout(shape);
    for (std::size_t p = 0; p < exchanges.size(); ++p) {
      exchanges[p].set_density(density);
      states[p].move_to(layout, static_cast<int>(p));
    }
  }

  riffle::Status sum(const float* gradients, std::size_t stride, float* result) {
    ++sequence;
    for (std::size_t p = 0; p < exchanges.size(); ++p) {
      exchanges[p].begin(states[p], gradients + p * stride, sparse::Element::kFloat32, sequence);
    }
    while (!exchanges[0].is_done()) {  // all have the same number of steps
      for (std::size_t p = 0; p < exchanges.size(); ++p) {
        const auto bytes = exchanges[p].message();
        messages[p].assign(bytes.begin(), bytes.end());
      }
      for (sparse::Exchange& exchange : exchanges) {
        const auto from = static_cast<std::size_t>(exchange.from());
        if (riffle::Status s = exchange.receive(messages[from]); !s) return s;
      }
    }
    if (exchanges[0].has_non_finite()) {
      return riffle::invalid_argument("a gradient or a sum is not finite");
    }
    exchanges[0].write_result(result, sparse::Element::kFloat32);
    return riffle::Status::ok();
  }
};

riffle_sparse_workers* riffle_sparse_workers_open(int workers, int teams, size_t elements,
                                                  const char* residual) {
  const sparse::Shape shape{workers, teams, elements, 1.0};
  const auto policy = policy_of(residual);
  const riffle::Status valid = policy ? sparse::validate(shape) : policy.status();
  if (!valid) {
    last_sparse_error = valid.message();
    return nullptr;
  }
  return std::make_unique<riffle_sparse_workers>(shape, *policy).release();
}

int riffle_sparse_workers_sum(riffle_sparse_workers* workers, double density,
                              const float* gradients, size_t stride, float* result) {
  sparse::Shape shape = workers->shape;
  shape.density = density;
  riffle::Status status = sparse::validate(shape);
  if (status && density != workers->shape.density) workers->set_density(density);
  if (status) status = workers->sum(gradients, stride, result);
  if (!status) last_sparse_error = status.message();
  return status ? 0 : 1;
}

const float* riffle_sparse_workers_residual(const riffle_sparse_workers* workers, int p) {
  return workers->states[static_cast<std::size_t>(p)].residual.data();
}

void riffle_sparse_workers_close(riffle_sparse_workers* workers) {
  const std::unique_ptr<riffle_sparse_workers> owned(workers);
}

const char* riffle_sparse_workers_error(void) { return last_sparse_error.c_str(); }

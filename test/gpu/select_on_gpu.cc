// The kernels of sparse/cuda on a GPU: whether their results are the processor's, and how fast
// selection is beside a copy from device memory to device memory.
//
//   riffle_select_on_gpu [MIB...]   sizes of the measured gradients (default 16 64 256 1024)
//   riffle_select_on_gpu --small    results of small inputs only, nothing measured
//
// Exit status 0 if all results are equal, 1 if not, 77 where there is no GPU.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "sparse/cuda/sums.h"
#include "test/cuda/select_case.h"

namespace riffle::sparse::cuda {
namespace {

constexpr int kSkipped = 77;
constexpr int kRepetitions = 20;
constexpr std::size_t kSmall = 4097;
constexpr std::size_t kLarge = 20000000;
constexpr Element kAllElements[] = {Element::kFloat32, Element::kFloat16, Element::kBfloat16};

int failures = 0;

void verdict(const std::string& what, const std::string& problem) {
  if (problem.empty()) return;
  std::printf("FAILED  %s: %s\n", what.c_str(), problem.c_str());
  ++failures;
}

void must(const Status& status) {
  if (status) return;
  std::printf("FAILED  %s\n", status.message().c_str());
  std::exit(1);
}

int check_selection(Device& device, bool is_small) {
  std::mt19937 random(1);
  Selector selector(device);
  int checked = 0;
  const std::vector<Numbers> kinds = kinds_of_numbers();
  for (const Numbers& numbers : kinds) {
    for (const std::size_t count :
         std::initializer_list<std::size_t>{1, 1000, kSmall, 65536, 1000003, kLarge}) {
      if (is_small && count > kSmall) continue;
      if (count == kLarge && &numbers != &kinds.front()) continue;  // the processor takes long
      std::vector<float> values(count), residual(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = numbers.at(random, i);
        residual[i] = 0.5F * numbers.at(random, i);
      }
      for (const Element element : kAllElements) {
        for (const bool has_residual : {false, true}) {
          SelectCase c{.gradient = stored(values, element),
                       .element = element,
                       .count = count,
                       .residual = {},
                       .k = std::max<std::size_t>(1, count / 100),
                       .has_short_indices = count <= 65536};
          if (has_residual) c.residual = residual;
          verdict(std::string("selection, ") + numbers.name + ", " + std::to_string(count) +
                      " elements of type " + std::to_string(static_cast<int>(element)) +
                      (has_residual ? ", with a residual" : ""),
                  compare(device, selector, c));
          ++checked;
        }
      }
    }
  }
  return checked;
}

int check_sums(Device& device, bool is_small) {
  std::mt19937 random(2);
  const std::vector<Numbers> kinds = kinds_of_numbers();
  int checked = 0;
  for (const std::size_t count : {1, 1000, 1000003}) {
    if (is_small && count > kSmall) continue;
    for (const Element element : kAllElements) {
      std::vector<std::vector<std::uint8_t>> inputs;
      Buffer memory(device);
      std::vector<const void*> pointers;
      const std::size_t bytes = count * size_of(element);
      must(memory.make_room(4 * bytes));
      for (std::size_t j = 0; j < 4; ++j) {
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = kinds[j].at(random, i);
        inputs.push_back(stored(values, element));
        char* const at = memory.as<char>() + j * bytes;
        must(device.copy_in(at, inputs[j].data(), bytes));
        pointers.push_back(at);
      }
      std::vector<std::uint8_t> is(bytes), expected(bytes);
      must(reduce(device, pointers, element, count, memory.as<void>(), element));
      must(device.copy_out(is.data(), memory.as<void>(), bytes));
      for (std::size_t i = 0; i < count; ++i) {
        float sum = load(inputs[0].data(), element, i);
        for (std::size_t j = 1; j < 4; ++j) sum = plus(sum, load(inputs[j].data(), element, i));
        store(expected.data(), element, i, sum);
      }
      verdict("sum of 4 times " + std::to_string(count) + " elements of type " +
                  std::to_string(static_cast<int>(element)),
              is == expected ? "" : "other bits than the processor's");
      ++checked;
    }
    // Every third element has something added to it.
    std::vector<float> dense(count), values;
    std::vector<std::uint32_t> indices;
    for (std::size_t i = 0; i < count; ++i) {
      dense[i] = kinds[0].at(random, i);
      if (i % 3 != 0) continue;
      indices.push_back(static_cast<std::uint32_t>(i));
      values.push_back(kinds[1].at(random, i));
    }
    Buffer on_dense(device), on_indices(device), on_values(device);
    must(on_dense.make_room(count * 4));
    must(on_indices.make_room(indices.size() * 4));
    must(on_values.make_room(values.size() * 4));
    must(device.copy_in(on_dense.as<void>(), dense.data(), count * 4));
    must(device.copy_in(on_indices.as<void>(), indices.data(), indices.size() * 4));
    must(device.copy_in(on_values.as<void>(), values.data(), values.size() * 4));
    must(scatter_add(device, on_indices.as<void>(), false, on_values.as<float>(), indices.size(),
                     on_dense.as<float>()));
    std::vector<float> is(count);
    must(device.copy_out(is.data(), on_dense.as<void>(), count * 4));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      dense[indices[i]] = plus(dense[indices[i]], values[i]);
    }
    verdict("scattered sum of " + std::to_string(count) + " elements",
            std::equal(is.begin(), is.end(), dense.begin(), is_same)
                ? ""
                : "other than the processor's");
    ++checked;
  }
  return checked;
}

// Median seconds of one of several enqueued one after the other, after one to warm up.
double seconds_of(Device& device, const std::function<Status()>& enqueue) {
  std::vector<double> all;
  for (int series = 0; series < 6; ++series) {
    must(device.wait());
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kRepetitions; ++i) must(enqueue());
    must(device.wait());
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    if (series > 0) all.push_back(took.count() / kRepetitions);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// Both count the bytes of the gradient: a copy reads and writes each once.
void measure(Device& device, std::size_t mib, Element element) {
  const std::size_t bytes = mib << 20;
  const std::size_t count = bytes / size_of(element);
  const std::size_t k = count / 100;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  std::vector<float> period(1 << 20);
  for (float& v : period) {
    const float n = normal(random);
    v = n * std::fabs(n);
  }
  Buffer gradient(device), copy(device), indices(device), values(device);
  must(gradient.make_room(bytes));
  must(copy.make_room(bytes));
  must(indices.make_room(2 * k * 4));
  must(values.make_room(2 * k * 4));
  std::vector<std::uint8_t> piece;
  for (std::size_t at = 0; at < bytes; at += piece.size()) {
    std::rotate(period.begin(), period.begin() + 12345, period.end());
    piece = stored(period, element);
    piece.resize(std::min(piece.size(), bytes - at));
    must(device.copy_in(gradient.as<char>() + at, piece.data(), piece.size()));
  }
  const double copied =
      seconds_of(device, [&] { return device.copy(copy.as<void>(), gradient.as<void>(), bytes); });
  Selector selector(device);
  const Input input{gradient.as<void>(), element, count, nullptr, nullptr};
  const Output output{indices.as<void>(), values.as<float>(), 2 * k, false};
  std::size_t found = 0;
  const auto select = [&] {
    if (Status s = selector.top_k(input, k, output); !s) return s;
    const Result<std::size_t> kept = selector.finish();
    if (kept) found = *kept;
    return kept.status();
  };
  const double selected = seconds_of(device, select);
  const auto rate = [&](double seconds) { return static_cast<double>(bytes) / seconds * 1e-9; };
  std::printf(
      "%5zu MiB of %s: copy %7.1f GB/s, selection of 1 %% %7.1f GB/s (%zu entries), ratio %.2f\n",
      mib, element == Element::kFloat32 ? "float32 " : "bfloat16", rate(copied), rate(selected),
      found, copied / selected);
}

int run(bool is_small, const std::vector<std::size_t>& sizes) {
  auto gpu = open_gpu();
  if (!gpu) {
    std::printf("%s\n", gpu.status().message().c_str());
    return kSkipped;
  }
  std::printf("%s\n", (*gpu)->description().c_str());
  const int selections = check_selection(**gpu, is_small);
  const int sums = check_sums(**gpu, is_small);
  std::printf("%d selections and %d sums compared with the processor's, %d differ\n", selections,
              sums, failures);
  for (const std::size_t mib : sizes) {
    for (const Element element : {Element::kFloat32, Element::kBfloat16}) {
      measure(**gpu, mib, element);
    }
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace
}  // namespace riffle::sparse::cuda

int main(int argc, char** argv) {
  const bool is_small = argc == 2 && std::string(argv[1]) == "--small";
  std::vector<std::size_t> sizes;
  for (int i = 1; i < argc && !is_small; ++i) {
    const unsigned long long mib = std::strtoull(argv[i], nullptr, 10);
    if (mib < 1 || mib > 4096) {
      std::fprintf(stderr,
                   "usage: riffle_select_on_gpu [--small | MIB...]  (1 to 4096 each, not %s)\n",
                   argv[i]);
      return 2;
    }
    sizes.push_back(mib);
  }
  if (argc == 1) sizes = {16, 64, 256, 1024};
  return riffle::sparse::cuda::run(is_small, sizes);
}

#include "bench/harness/worker.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <iomanip>
#include <memory>
#include <optional>
#include <sstream>
#include <vector>

#include "bench/harness/gradient_data.h"
#include "bench/harness/tiled_data.h"

namespace riffle::bench {
namespace {

struct Order {
  std::size_t bytes = 0;
  int type = 0, op = 0, repeats = 1;
  unsigned salt = 0;
  // 1: not every element is checked, but what the nodes' sums must be equal in. 2: data like
  // gradients, of which not all come out at once; what is checked is that all nodes get the same.
  // 3: both are.
  int sums = 0;
  bool operator==(const Order&) const = default;
};

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The buffers of one order and what must come out.
class Task {
 public:
  Task(const Order& order, AllReducer& library, int rank, int ranks)
      : order_(order),
        library_(library),
        type_(static_cast<DataType>(order.type)),
        data_(type_, static_cast<host::Op>(order.op), rank, ranks, order.salt),
        send_(library.in_place() ? 0 : order.bytes),
        receive_(order.bytes) {
    if (order.sums == 2) gradients_.emplace(rank);
    work_ = {library.in_place() ? receive_.data() : send_.data(), receive_.data(),
             order.bytes / size_of(type_), type_, static_cast<host::Op>(order.op)};
  }
  Status prepare() { return library_.prepare(work_); }
  bool is(const Order& order) const { return order == order_; }

  void fill() {
    std::memset(receive_.data(), 0xff, receive_.size());  // the last result must not count again
    if (gradients_) {
      gradients_->fill(static_cast<float*>(const_cast<void*>(work_.send)), work_.count);
    } else {
      data_.fill(const_cast<void*>(work_.send), work_.count);
    }
  }
  Status run() { return library_.run(work_); }
  std::int64_t cpu_us() const { return library_.cpu_us(); }
  std::size_t wrong() const {
    return library_.survives_losses() ? data_.wrong_after_loss(receive_.data(), work_.count)
                                      : data_.wrong(receive_.data(), work_.count);
  }

  // For results that differ between nodes while their sum over the nodes is right: two sums over
  // the elements, one plain and one with weights that tell places apart, and one of magnitudes.
  std::array<double, 3> sums(bool of_result) const {
    const auto* x = reinterpret_cast<const float*>(of_result ? receive_.data() : work_.send);
    std::array<double, 3> sums{};
    for (std::size_t i = 0; i < work_.count; ++i) {
      const double v = static_cast<double>(x[i]);
      sums[0] += v;
      sums[1] += v * static_cast<double>((i * 2654435761u >> 16) & 255) / 255;
      sums[2] += std::fabs(v);
    }
    return sums;
  }

  // A number that tells results apart, and how many elements of the result are not zero.
  std::uint64_t result_hash() const {
    std::uint64_t hash = 0xcbf29ce484222325u;
    for (std::size_t i = 0; i < work_.count; ++i) {
      std::uint32_t bits;
      std::memcpy(&bits, &receive_[i * sizeof bits], sizeof bits);
      hash = (hash ^ bits) * 0x100000001b3u;
    }
    return hash;
  }
  std::size_t elements_not_zero() const {
    const auto* x = reinterpret_cast<const float*>(receive_.data());
    return work_.count - static_cast<std::size_t>(std::count(x, x + work_.count, 0.0F));
  }

  // Several runs in a row: in place the numbers would grow, so they run on zeros.
  void fill_zeros() { std::memset(const_cast<void*>(work_.send), 0, order_.bytes); }
  std::size_t not_zero() const {
    std::size_t n = 0;
    for (std::byte b : receive_) n += b != std::byte{0};
    return n;
  }

 private:
  Order order_;
  AllReducer& library_;
  DataType type_;
  TiledData data_;
  std::optional<GradientData> gradients_;
  std::vector<std::byte> send_, receive_;
  Work work_;
};

// One order: everything but the runs themselves happens outside the measured time.
Status carry_out(const Order& order, ControlLine& line, Task& task) {
  std::size_t wrong = 0;
  task.fill();
  if (order.repeats > 1) {
    if (Status s = task.run(); !s) return s;
    wrong = task.wrong();
    task.fill_zeros();
  }
  if (Status s = line.tell("ready"); !s) return s;
  if (line.hear() != "go") return remote_error("the bench is gone");
  const std::int64_t cpu_before = task.cpu_us();
  const std::int64_t start_ns = now_ns();
  for (int i = 0; i < order.repeats; ++i) {
    if (Status s = task.run(); !s) return s;
  }
  const std::int64_t end_ns = now_ns();
  const std::int64_t cpu_spent = task.cpu_us() - cpu_before;
  // Not before all have run: checking takes the processors that they share.
  if (Status s = line.tell("ran"); !s) return s;
  if (line.hear() != "check") return remote_error("the bench is gone");
  if (order.sums == 0) wrong += order.repeats > 1 ? task.not_zero() : task.wrong();
  std::ostringstream done;
  done << "done " << start_ns << ' ' << end_ns << ' ' << cpu_spent << ' ' << wrong;
  if (order.sums >= 2) done << ' ' << task.result_hash() << ' ' << task.elements_not_zero();
  if (order.sums == 1 || order.sums == 3) {
    done << std::setprecision(17);
    for (const bool of_result : {false, true}) {
      for (const double sum : task.sums(of_result)) done << ' ' << sum;
    }
  }
  return line.tell(done.str());
}

}  // namespace

std::int64_t AllReducer::cpu_us() const {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return (use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1'000'000LL + use.ru_utime.tv_usec +
         use.ru_stime.tv_usec;
}

Status serve(ControlLine& line, AllReducer& library, int rank, int ranks) {
  std::unique_ptr<Task> task;
  while (true) {
    std::istringstream message(line.hear());
    std::string word;
    message >> word;
    if (word == "quit" || word.empty()) return Status::ok();
    Order order;
    message >> order.bytes >> order.type >> order.op >> order.repeats >> order.salt >> order.sums;
    if (word != "op" || !message) return internal_error("unknown order: " + message.str());
    Status status;
    if (!task || !task->is(order)) {
      task.reset();
      task = std::make_unique<Task>(order, library, rank, ranks);
      status = task->prepare();
    }
    if (status) status = carry_out(order, line, *task);
    if (!status) {
      (void)line.tell("error " + status.message());
      return status;
    }
  }
}

}  // namespace riffle::bench

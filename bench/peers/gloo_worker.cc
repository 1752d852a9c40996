// riffle_bench_gloo: one measured process of Gloo (Debian's libgloo-dev) over its TCP transport.
//   riffle_bench_gloo <control> <store folder> <rank> <ranks> <own address> <algorithm>
// ring (which PyTorch's gloo backend uses) and bcube are those of gloo::allreduce; ring-classic,
// chunked (ring), hd (halving-doubling) and bcube-classic are Gloo's older classes.
#include <gloo/allreduce.h>
#include <gloo/allreduce_bcube.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "bench/harness/worker.h"

namespace riffle::bench {
namespace {

template <class T>
const gloo::ReductionFunction<T>* function(host::Op op) {
  switch (op) {
    case host::Op::kProd:
      return gloo::ReductionFunction<T>::product;
    case host::Op::kMax:
      return gloo::ReductionFunction<T>::max;
    case host::Op::kMin:
      return gloo::ReductionFunction<T>::min;
    default:
      return gloo::ReductionFunction<T>::sum;
  }
}

class GlooReducer final : public AllReducer {
 public:
  GlooReducer(std::shared_ptr<gloo::Context> context, std::string algorithm)
      : context_(std::move(context)), algorithm_(std::move(algorithm)) {}

  bool in_place() const override { return true; }

  Status prepare(const Work& work) override {
    switch (work.type) {
      case DataType::kInt8:
        return make<std::int8_t>(work);
      case DataType::kUint8:
        return make<std::uint8_t>(work);
      case DataType::kInt32:
        return make<std::int32_t>(work);
      case DataType::kInt64:
        return make<std::int64_t>(work);
      case DataType::kUint64:
        return make<std::uint64_t>(work);
      case DataType::kFloat32:
        return make<float>(work);
      case DataType::kFloat64:
        return make<double>(work);
      default:
        return invalid_argument("Gloo has no " + std::string(name_of(work.type)));
    }
  }

  Status run(const Work&) override {
    if (classic_)
      classic_->run();
    else
      gloo::allreduce(*options_);
    return Status::ok();
  }

 private:
  template <class T>
  Status make(const Work& work) {
    auto* data = static_cast<T*>(work.receive);
    const auto* fn = function<T>(work.op);
    if (algorithm_ == "ring") return make_modern(gloo::AllreduceOptions::Algorithm::RING, work, fn);
    if (algorithm_ == "bcube") {
      return make_modern(gloo::AllreduceOptions::Algorithm::BCUBE, work, fn);
    }
    const int count = static_cast<int>(work.count);
    if (static_cast<std::size_t>(count) != work.count) return invalid_argument("too many elements");
    classic_.reset();
    if (algorithm_ == "hd") return make_classic<gloo::AllreduceHalvingDoubling<T>>(data, count, fn);
    if (algorithm_ == "chunked")
      return make_classic<gloo::AllreduceRingChunked<T>>(data, count, fn);
    if (algorithm_ == "ring-classic") return make_classic<gloo::AllreduceRing<T>>(data, count, fn);
    if (algorithm_ == "bcube-classic") {
      return make_classic<gloo::AllreduceBcube<T>>(data, count, fn);
    }
    return invalid_argument("Gloo has no all-reduce \"" + algorithm_ + "\"");
  }

  template <class T>
  Status make_modern(gloo::AllreduceOptions::Algorithm algorithm, const Work& work,
                     const gloo::ReductionFunction<T>* fn) {
    options_ = std::make_unique<gloo::AllreduceOptions>(context_);
    options_->setAlgorithm(algorithm);
    options_->setOutput(static_cast<T*>(work.receive), work.count);
    options_->setReduceFunction([fn](void* out, const void* a, const void* b, std::size_t n) {
      // Gloo calls it with out == a.
      if (out != a) std::memcpy(out, a, n * sizeof(T));
      fn->call(static_cast<T*>(out), static_cast<const T*>(b), n);
    });
    return Status::ok();
  }

  template <class Classic, class T>
  Status make_classic(T* data, int count, const gloo::ReductionFunction<T>* fn) {
    classic_ = std::make_unique<Classic>(context_, std::vector<T*>{data}, count, fn);
    return Status::ok();
  }

  std::shared_ptr<gloo::Context> context_;
  std::string algorithm_;
  std::unique_ptr<gloo::Algorithm> classic_;
  std::unique_ptr<gloo::AllreduceOptions> options_;
};

Status run(char** argv) {
  const int rank = std::atoi(argv[3]), ranks = std::atoi(argv[4]);
  gloo::transport::tcp::attr where(argv[5]);
  auto device = gloo::transport::tcp::CreateDevice(where);
  gloo::rendezvous::FileStore store(argv[2]);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->setTimeout(std::chrono::seconds(120));
  context->connectFullMesh(store, device);
  auto line = ControlLine::connect(argv[1], rank);
  if (!line) return line.status();
  GlooReducer gloo(context, argv[6]);
  return serve(line.value(), gloo, rank, ranks);
}

}  // namespace
}  // namespace riffle::bench

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr, "riffle_bench_gloo is started by riffle bench\n");
    return 2;
  }
  try {
    const riffle::Status status = riffle::bench::run(argv);
    if (!status) std::fprintf(stderr, "gloo, node %s: %s\n", argv[3], status.message().c_str());
    return status ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gloo, node %s: %s\n", argv[3], e.what());
    return 1;
  }
}

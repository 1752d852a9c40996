// riffle_bench_mpi: one measured process of MPI_Allreduce; started by mpirun as
//   riffle_bench_mpi <control>
#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "bench/harness/worker.h"

namespace riffle::bench {
namespace {

MPI_Datatype mpi_type(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return MPI_INT8_T;
    case DataType::kUint8:
      return MPI_UINT8_T;
    case DataType::kInt32:
      return MPI_INT32_T;
    case DataType::kUint32:
      return MPI_UINT32_T;
    case DataType::kInt64:
      return MPI_INT64_T;
    case DataType::kUint64:
      return MPI_UINT64_T;
    case DataType::kFloat32:
      return MPI_FLOAT;
    case DataType::kFloat64:
      return MPI_DOUBLE;
    default:
      return MPI_DATATYPE_NULL;
  }
}

MPI_Op mpi_op(host::Op op) {
  switch (op) {
    case host::Op::kProd:
      return MPI_PROD;
    case host::Op::kMax:
      return MPI_MAX;
    case host::Op::kMin:
      return MPI_MIN;
    default:
      return MPI_SUM;
  }
}

class MpiReducer final : public AllReducer {
 public:
  Status prepare(const Work& work) override {
    if (mpi_type(work.type) != MPI_DATATYPE_NULL) return Status::ok();
    return invalid_argument("MPI has no " + std::string(name_of(work.type)));
  }
  Status run(const Work& work) override {
    const int rc = MPI_Allreduce(work.send, work.receive, static_cast<int>(work.count),
                                 mpi_type(work.type), mpi_op(work.op), MPI_COMM_WORLD);
    return rc == MPI_SUCCESS ? Status::ok()
                             : remote_error("MPI_Allreduce returned " + std::to_string(rc));
  }
};

// A rank on a wrong node would talk past the links that are to be measured.
Status check_place(int rank) {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  const std::string want = "node" + std::to_string(rank);
  const std::string host = name;
  if (host.rfind("node", 0) != 0 || host == want) return Status::ok();  // loopback: any name
  return internal_error("rank " + std::to_string(rank) + " runs on " + host);
}

Status run(const std::string& control) {
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (Status s = check_place(rank); !s) return s;
  auto line = ControlLine::connect(control, rank);
  if (!line) return line.status();
  MpiReducer mpi;
  return serve(line.value(), mpi, rank, ranks);
}

}  // namespace
}  // namespace riffle::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "riffle_bench_mpi is started by riffle bench\n");
    return 2;
  }
  MPI_Init(&argc, &argv);
  const riffle::Status status = riffle::bench::run(argv[1]);
  if (!status) {
    std::fprintf(stderr, "openmpi: %s\n", status.message().c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}

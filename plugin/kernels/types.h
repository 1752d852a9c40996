// NCCL's datatypes and reduction operators, with NCCL's numbers (docs/nccl-contract.md); and one
// type of our own that only sums.
#pragma once

#include <cstddef>
#include <cstdint>

namespace riffle {

enum class DataType : std::uint8_t {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8E4m3 = 10,
  kFloat8E5m2 = 11,
  kFloat8Block = 64,  // float8_block.h: 128 numbers in 132 bytes
};
inline constexpr int kDataTypes = 12;  // of NCCL
inline constexpr std::size_t kFloat8BlockElements = 128, kFloat8BlockBytes = 132;

enum class ReduceOp : std::uint8_t { kSum = 0, kProd = 1, kMax = 2, kMin = 3 };
inline constexpr int kReduceOps = 4;

constexpr std::size_t size_of(DataType t) {
  switch (t) {
    case DataType::kInt8:
    case DataType::kUint8:
    case DataType::kFloat8E4m3:
    case DataType::kFloat8E5m2:
      return 1;
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return 2;
    case DataType::kInt32:
    case DataType::kUint32:
    case DataType::kFloat32:
      return 4;
    case DataType::kInt64:
    case DataType::kUint64:
    case DataType::kFloat64:
      return 8;
    case DataType::kFloat8Block:
      return kFloat8BlockBytes;
  }
  return 0;
}

const char* name_of(DataType t);  // nccl-tests' names: "float", "half", "bfloat16", ...
const char* name_of(ReduceOp op);

}  // namespace riffle

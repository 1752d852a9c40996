// What a test may ask the strict plugin's COLLNET. Exported with C linkage as
// `strict_collnet_probe_vN`.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strict {

struct CollNetProbe {
  int inits, finalizes;            // so far
  int listeners, colls, requests;  // alive now
  std::uint64_t comm_id;           // of the last init; v11 on
  std::size_t count;               // of the last iallreduce
  std::size_t part_bytes;          // of the last iallgather or ireducescatter
  int members;                     // of the last makeVDevice
  int dma_buf_fd;                  // of the last regMrDmaBuf
};

using ReadCollNetProbe = void(CollNetProbe* out);

}  // namespace strict

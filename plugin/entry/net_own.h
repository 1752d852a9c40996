// Riffle's own NET (net/net_service.h) behind the members of a table of NCCL's.
#pragma once

namespace riffle::entry {

// For NetV5 to NetV12. All members but name and init. Left null, which NCCL understands:
// regMrDmaBuf (host memory only), getDeviceMr (no device offload), irecvConsumed (no receive
// credits), makeVDevice (NICs are joined by us), setNetAttr.
template <class Table>
void fill_own_net(Table* table);

}  // namespace riffle::entry

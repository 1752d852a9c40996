// Agreement on knobs within a node. All ranks of a communicator must decide alike, but only the
// head ranks of a node meet the other nodes (in COLLNET's connect). So every process publishes its
// decision-relevant knobs on its node, and a head checks that its neighbours have the same ones
// before it compares them across nodes.
//
// A publication is a live file (live_file.h) in /dev/shm/riffle-<uid>. Where files cannot be
// written there is one warning and no agreement within the node. Thread safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "topology/base/status.h"

namespace riffle::agreement {

// What tells jobs on one node apart: NCCL's communicator id where the table version gives it (not
// 0), else the launcher's job id, else the rendezvous address, else the session of the process.
std::string job_key(std::uint64_t comm_id);

class Publication;  // withdrawn when its last holder lets go, or the process ends

std::string default_directory();

// Publishes `knobs` ("NAME=value" lines) under `key`; while a publication of this process under the
// key lives it is shared. Null if the directory cannot be used.
std::shared_ptr<Publication> publish(const std::string& key, const std::string& knobs,
                                     const std::string& directory = default_directory());

// Ok if every other live process that published `key` has exactly `knobs`; else invalid argument,
// naming the process, its host, the knob and both values.
Status check_local(const std::string& key, const std::string& knobs,
                   const std::string& directory = default_directory());

// Ok if two lists of knobs are equal, else invalid argument naming the first that differs; `who`
// ("rank 3 on node7") has `theirs`. Also for comparisons across nodes.
Status compare_knobs(const std::string& who, const std::string& theirs, const std::string& ours);

}  // namespace riffle::agreement

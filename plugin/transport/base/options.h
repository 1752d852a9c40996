// What the knobs say about the transport. Made at the border (plugin/entry/options.h) and handed
// down; the settings that the whole process shares (devices, threads) are those of the first use.
#pragma once

#include <cstdint>
#include <string>

#include "plugin/transport/base/encryption.h"

namespace riffle {

// Which of a machine's addresses become devices (device/nic_choice.h).
struct DeviceChoice {
  std::string rule;            // empty: the NICs that nic_choice.h takes for real
  std::string rule_source;     // the variable that holds it, for messages
  std::string family = "any";  // ipv4 and ipv6 leave out the other
  bool per_nic = false;
};

// The threads that make progress, shared by all communicators of the process.
struct ThreadOptions {
  int count = 1;
  int per_mesh = 1;  // that share the work of one; all nodes take the least of any
  std::string cpus;  // where they run (device/placement.h); empty: near the NIC
  // Work that moves no more is left to callers that wait (Reactor::poll); -1: as there are CPUs.
  std::int64_t polled_bytes = -1;
};

// Names of transports.
inline constexpr char kOverTcp[] = "tcp";
inline constexpr char kOverLibrary[] = "library";  // another NCCL NET library's connections

struct TransportOptions {
  std::string name = kOverTcp;  // a line of the table in factory.cc
  DeviceChoice devices;
  ThreadOptions threads;
  int streams = 0;  // to each peer; 0: as their number asks for (handshake/stream_set.h)
  std::string congestion = "auto";  // reactor/congestion.h
  bool payload_crc = false;         // CRC32C of payloads, on the sockets of both sides
  EncryptionOptions encryption;
  std::uint64_t peer_timeout_ns = 60'000'000'000;
  std::uint64_t connect_timeout_ns = 60'000'000'000;
};

}  // namespace riffle

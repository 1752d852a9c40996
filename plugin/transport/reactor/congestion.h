// The TCP congestion control of the library's sockets (RIFFLE_CONGESTION).
//
// Group exchanges send short bursts to many peers in turn. A model-based control such as BBR paces
// each flow at the rate it has seen, which for bursts is far below what the link would carry: on
// an emulated 400 Mbit/s network of 8 nodes all-reduces took about twice as long as with a
// loss-based one (docs/acceptance.md). So `auto` keeps the system's choice unless that is bbr.
#pragma once

#include <string>

namespace riffle {

// Any thread. A name the kernel does not know is reported once and leaves the system's choice.
void choose_congestion_control(int fd, const std::string& wanted);

}  // namespace riffle

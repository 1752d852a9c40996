// Interface names by the rules of NCCL's NCCL_SOCKET_IFNAME (src/misc/socket.cc there):
//   "eth,ib"   names that begin with one of the words      "^docker"  all but those
//   "=eth0"    exactly this name                           "^=eth0"   all but exactly this one
#pragma once

#include <string>
#include <vector>

namespace riffle {

class InterfaceFilter {
 public:
  explicit InterfaceFilter(const std::string& rule);
  bool accepts(const std::string& interface) const;
  bool excludes() const { return excludes_; }  // it says what not to use

 private:
  bool excludes_ = false;
  bool is_exact_ = false;
  std::vector<std::string> words_;
};

}  // namespace riffle

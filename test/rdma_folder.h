// A folder in the place of /sys/class/infiniband (RIFFLE_RDMA_PORTS), gone with the object.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace riffle {

class RdmaFolder {
 public:
  RdmaFolder()
      : root_(std::filesystem::path(::testing::TempDir()) /
              ("riffle_rdma_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }
  ~RdmaFolder() { std::filesystem::remove_all(root_); }
  RdmaFolder(const RdmaFolder&) = delete;
  RdmaFolder& operator=(const RdmaFolder&) = delete;

  RdmaFolder& add(const std::string& device, int port, const std::string& state,
                  const std::string& link_layer) {
    const auto folder = root_ / device / "ports" / std::to_string(port);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "state") << state << "\n";
    std::ofstream(folder / "link_layer") << link_layer << "\n";
    return *this;
  }
  std::string path() const { return root_.string(); }

 private:
  const std::filesystem::path root_;
};

}  // namespace riffle

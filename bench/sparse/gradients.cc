#include "bench/sparse/gradients.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>
#include <utility>

namespace riffle::bench {
namespace {

constexpr char kMagic[8] = {'R', 'I', 'F', 'G', 'R', 'A', 'D', '1'};
constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kScales = 4096;  // distinct ones
constexpr int kLayerBits = 16;
constexpr double kLayerSpread = 0.8, kElementSpread = 1.0;

std::uint64_t mixed(std::uint64_t x) {  // splitmix64
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The sum of four uniform numbers: mean 0, variance 1, out of 64 random bits.
float bell(std::uint64_t bits) {
  const auto sum = static_cast<std::int32_t>((bits & 0xffff) + (bits >> 16 & 0xffff) +
                                             (bits >> 32 & 0xffff) + (bits >> 48)) -
                   131070;
  return static_cast<float>(sum) * (1.7320508F / 65536.0F);
}

}  // namespace

Result<Gradients> Gradients::open(const std::string& file, int workers, std::uint64_t elements) {
  Gradients self;
  if (file.empty()) {
    std::mt19937 random(1);
    std::lognormal_distribution<double> spread(0, kElementSpread);
    for (std::size_t i = 0; i < kScales; ++i) {
      self.scales_.push_back(static_cast<float>(spread(random)));
    }
    return self;
  }
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    if (fd >= 0) ::close(fd);
    return system_error("cannot read the gradients in " + file);
  }
  self.map_bytes_ = static_cast<std::size_t>(info.st_size);
  void* map = self.map_bytes_ >= kHeaderBytes
                  ? mmap(nullptr, self.map_bytes_, PROT_READ, MAP_SHARED, fd, 0)
                  : MAP_FAILED;
  ::close(fd);
  if (map == MAP_FAILED) return invalid_argument(file + ": too short for recorded gradients");
  self.map_ = static_cast<const std::byte*>(map);
  std::memcpy(&self.workers_, self.map_ + 8, 4);
  std::memcpy(&self.steps_, self.map_ + 12, 4);
  std::memcpy(&self.elements_, self.map_ + 16, 8);
  if (std::memcmp(self.map_, kMagic, sizeof kMagic) != 0 || self.steps_ == 0 ||
      self.elements_ > self.map_bytes_ || self.workers_ > self.map_bytes_ ||
      (self.map_bytes_ - kHeaderBytes) / 4 / self.steps_ < self.workers_ * self.elements_) {
    return invalid_argument(file + ": not a file of bench/sparse/record_gradients.py, or cut off");
  }
  if (self.workers_ < static_cast<std::uint32_t>(workers) || self.elements_ < elements) {
    return invalid_argument(file + " has gradients of " + std::to_string(self.workers_) +
                            " workers and " + std::to_string(self.elements_) +
                            " elements; asked for are " + std::to_string(workers) + " and " +
                            std::to_string(elements));
  }
  return self;
}

Gradients::Gradients(Gradients&& other) noexcept
    : scales_(std::move(other.scales_)),
      map_(std::exchange(other.map_, nullptr)),
      map_bytes_(other.map_bytes_),
      workers_(other.workers_),
      steps_(other.steps_),
      elements_(other.elements_) {}

Gradients::~Gradients() {
  if (map_ != nullptr) munmap(const_cast<std::byte*>(map_), map_bytes_);
}

void Gradients::fill(std::uint64_t step, int worker, std::span<float> out) const {
  if (map_ == nullptr) return generate(step, worker, out);
  const std::uint64_t at =
      ((step % steps_) * workers_ + static_cast<std::uint64_t>(worker)) * elements_;
  std::memcpy(out.data(), map_ + kHeaderBytes + at * sizeof(float), out.size_bytes());
}

void Gradients::generate(std::uint64_t step, int worker, std::span<float> out) const {
  const std::uint64_t common = mixed(2 * step),
                      own = mixed(common + 1 + static_cast<unsigned>(worker));
  const auto of_common = static_cast<float>(std::sqrt(kCommon));
  const auto of_own = static_cast<float>(std::sqrt(1 - kCommon));
  float layer = 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i % (std::size_t{1} << kLayerBits) == 0) {
      layer = static_cast<float>(
          std::exp(kLayerSpread * static_cast<double>(bell(mixed(~(i >> kLayerBits))))));
    }
    const float scale = layer * scales_[mixed(i) % kScales];
    out[i] =
        scale * (of_common * bell(mixed(common ^ i << 1)) + of_own * bell(mixed(own ^ i << 1)));
  }
}

}  // namespace riffle::bench

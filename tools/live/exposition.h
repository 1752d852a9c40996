// Exposition: metrics in the text format that Prometheus reads (version 0.0.4). Samples of a family
// stand together under its HELP and TYPE, in whatever order they were added.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace riffle::tools {

class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Names and types are those of Prometheus; a counter's name ends in _total.
  void counter(const std::string& name, const char* help, const Labels& labels,
               std::uint64_t value);
  void counter_s(const std::string& name, const char* help, const Labels& labels,
                 std::uint64_t value_us);  // in seconds
  void gauge(const std::string& name, const char* help, const Labels& labels, double value);

  std::string text() const;

 private:
  struct Family {
    std::string head, samples;
  };
  void add(const std::string& name, const char* type, const char* help, const Labels& labels,
           const std::string& value);

  std::map<std::string, Family> families_;
};

}  // namespace riffle::tools

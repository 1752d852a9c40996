// One table of a profile's TOML file: keeps the first fault and answers later questions with
// defaults.
#pragma once

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "lab/cluster/profile.h"
#include "topology/base/status.h"

namespace riffle::cluster {

class Section {
 public:
  Section(const toml::table& table, std::string title, Status& fault)
      : table_(table), title_(std::move(title)), fault_(fault) {}

  bool has(const char* key) const { return table_.contains(key); }
  void accept_only(std::initializer_list<std::string_view> keys);
  // `absent` is the value of a key that is not there; negative: it must be.
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most, std::int64_t absent);
  // Key `both`, or `out` and `in`; none of them: not limited.
  Rates rates(const char* both, const char* out, const char* in);
  std::string text(const char* key);
  bool flag(const char* key);
  // The place of the text among `choices`; 0 where the key is absent.
  std::size_t choice(const char* key, std::initializer_list<std::string_view> choices);
  void fail(const std::string& what) {
    if (fault_) fault_ = invalid_argument(title_ + ": " + what);
  }

  template <class T>
  std::vector<T> list(const char* key, const char* of_what) {
    std::vector<T> out;
    const toml::array* array = table_[key].as_array();
    if (array == nullptr || array->empty()) {
      fail(std::string(key) + " must be a list of " + of_what);
      return out;
    }
    for (const toml::node& item : *array) {
      const auto value = item.value_exact<T>();
      if (!value)
        fail(std::string(key) + " must be a list of " + of_what);
      else
        out.push_back(*value);
    }
    return out;
  }

 private:
  const toml::table& table_;
  std::string title_;
  Status& fault_;
};

}  // namespace riffle::cluster

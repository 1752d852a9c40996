// Compares the layout of every record in plugin/abi with the golden layout, both ways: a golden row
// of a version that we declare needs a counterpart here, and nothing here may be missing there.
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>

#include "plugin/abi/collnet.h"
#include "plugin/abi/env.h"
#include "plugin/abi/net.h"
#include "plugin/abi/profiler.h"
#include "plugin/abi/tuner.h"
#include "test/abi/golden.h"

namespace riffle::abi::layout_test {
namespace {

using Key = std::tuple<std::string, int, std::string, std::string>;  // interface ... member

struct Place {
  std::size_t offset;
  std::size_t size;
  std::string kind;  // what the bytes are: "pointer", "unsigned", "struct", ...
  bool operator==(const Place&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Place& p) {
  return out << p.kind << " of " << p.size << " bytes at " << p.offset;
}

template <class T>
std::string kind_of() {
  if constexpr (std::is_array_v<T>) return "array of " + kind_of<std::remove_all_extents_t<T>>();
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_floating_point_v<T>) return "real";
  if constexpr (std::is_integral_v<T>) return std::is_signed_v<T> ? "signed" : "unsigned";
  if constexpr (std::is_pointer_v<T>) {
    return std::is_function_v<std::remove_pointer_t<T>> ? "function" : "pointer";
  }
  return "struct";
}

std::string kind_of_golden(const std::string& type) {
  if (type.find('[') != std::string::npos) {
    return "array of " + kind_of_golden(type.substr(0, type.find('[')));
  }
  if (type == "function pointer") return "function";
  if (type.ends_with('*')) return "pointer";
  if (type == "bool") return "bool";
  if (type == "float" || type == "double") return "real";
  if (type == "size_t" || type.starts_with("uint")) return "unsigned";
  // NCCL's enums are ints; pid_t was renamed in 2.30.
  if (type.starts_with("int") || type.starts_with("pid_t") || type == "ncclNetDeviceType") {
    return "signed";
  }
  return "struct";
}

// The recursion of a macro over its arguments: enough for 256 of them.
#define EXPAND(...) EXPAND3(EXPAND3(EXPAND3(EXPAND3(__VA_ARGS__))))
#define EXPAND3(...) EXPAND2(EXPAND2(EXPAND2(EXPAND2(__VA_ARGS__))))
#define EXPAND2(...) EXPAND1(EXPAND1(EXPAND1(EXPAND1(__VA_ARGS__))))
#define EXPAND1(...) EXPAND0(EXPAND0(EXPAND0(EXPAND0(__VA_ARGS__))))
#define EXPAND0(...) __VA_ARGS__
#define PARENS ()
#define FOR_EACH(...) __VA_OPT__(EXPAND(FOR_EACH_STEP(__VA_ARGS__)))
#define FOR_EACH_STEP(member, ...) MEMBER(member) __VA_OPT__(FOR_EACH_AGAIN PARENS(__VA_ARGS__))
#define FOR_EACH_AGAIN() FOR_EACH_STEP

// The members of one record. A call each, and nothing for the compiler to expand: there are
// hundreds.
struct Members {
  std::string interface;
  int version;
  std::string record;
  std::map<Key, Place>* all;

  template <class T>
  [[gnu::noinline]] void add(const char* member, std::size_t offset) {
    (*all)[{interface, version, record, member}] = {offset, sizeof(T), kind_of<T>()};
  }
};

#define MEMBER(member) members.add<decltype(Record::member)>(#member, offsetof(Record, member));

#define RECORD(interface_name, version_number, golden_name, ours, ...)  \
  {                                                                     \
    using Record = ours;                                                \
    Members members{interface_name, version_number, golden_name, &all}; \
    members.add<Record>("(sizeof)", 0);                                 \
    FOR_EACH(__VA_ARGS__)                                               \
  }

std::map<Key, Place> declared() {
  std::map<Key, Place> all;
#include "test/abi/records.def"
  return all;
}

bool is_declared_version(const std::string& interface, int version) {
  return !((interface == "net" || interface == "collnet") && version == 4);  // 2.18 and before
}

std::string shown(const Key& key) {
  const auto& [interface, version, name, member] = key;
  return name + "." + member;
}

TEST(Layout, EveryGoldenRowMatches) {
  const std::map<Key, Place> ours = declared();
  std::map<std::string, std::set<int>> versions;
  std::set<Key> seen;
  for (const golden::Row& row : golden::read("nccl-abi-layout.csv")) {
    const int version = std::stoi(row.at("version"));
    versions[row.at("interface")].insert(version);
    if (!is_declared_version(row.at("interface"), version)) continue;
    const Key key{row.at("interface"), version, row.at("struct"), row.at("member")};
    seen.insert(key);
    const auto found = ours.find(key);
    if (found == ours.end()) {
      ADD_FAILURE() << shown(key) << " of the golden layout has no counterpart in records.def";
      continue;
    }
    const Place expected{std::stoul(row.at("offset")), std::stoul(row.at("size")),
                         kind_of_golden(row.at("type"))};
    EXPECT_EQ(found->second, expected) << shown(key);
  }
  for (const auto& [key, place] : ours) {
    EXPECT_TRUE(seen.contains(key)) << shown(key) << " is not in the golden layout";
  }
  EXPECT_EQ(versions["net"], (std::set{4, 5, 6, 7, 8, 9, 10, 11, 12}));
  EXPECT_EQ(versions["collnet"], versions["net"]);
  EXPECT_EQ(versions["tuner"], (std::set{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(versions["profiler"], versions["tuner"]);
  EXPECT_EQ(versions["env"], (std::set{1, 2}));
}

}  // namespace
}  // namespace riffle::abi::layout_test

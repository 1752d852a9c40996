// Sizes on the command line: 1048576, 1024K, 1M. The default is what is there, in whole MiB.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace riffle::tools {

inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

inline void add_bytes(CLI::App& sub, std::uint64_t& bytes, const std::string& what) {
  sub.add_option("--bytes", bytes, what + ", such as 32M")
      ->check(CLI::Range(std::uint64_t{1}, kMostBytes).description(""))
      ->transform(CLI::AsSizeValue(false).description(""))
      ->type_name("SIZE")
      ->default_str(std::to_string(bytes >> 20) + "M");
}

}  // namespace riffle::tools

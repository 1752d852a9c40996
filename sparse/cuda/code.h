// The kernels' code, as built into this library.
#pragma once

#include <span>
#include <string_view>

namespace riffle::sparse::cuda {

struct SourceFile {
  const char* name;  // as an #include names it
  const char* text;
};

// What NVRTC compiles: the program first, then what it includes.
std::span<const SourceFile> source_files();

// PTX for compute capability 8.0, which a driver translates for every later one too; empty if
// neither nvcc nor NVRTC was there when this was built.
std::string_view built_in_ptx();

}  // namespace riffle::sparse::cuda

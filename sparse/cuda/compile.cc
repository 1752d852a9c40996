// Translates the kernels with NVRTC: for the build, which wants PTX, and for the test that every
// architecture accepts them.
//
//   riffle_cuda_compile [--library PATH] [--output FILE] ARCHITECTURE...
//
// ARCHITECTURE is compute_80 (PTX), sm_90 (machine code) and the like; FILE gets the last one's.
// Exit status 77 where there is no NVRTC, or one that knows none of the architectures.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "sparse/cuda/kernels.h"
#include "sparse/cuda/nvrtc.h"

namespace riffle::sparse::cuda {
namespace {

constexpr int kSkipped = 77;
constexpr int kUsage = 2;

// Does the code have every kernel?
bool is_complete(const std::string& code) {
  for (const char* name : kKernelNames) {
    if (code.find(name) == std::string::npos) return false;
  }
  return true;
}

int compile_all(const Nvrtc& nvrtc, const std::vector<std::string>& wanted,
                const std::string& output) {
  const std::vector<int> known = nvrtc.architectures();
  int compiled = 0;
  for (const std::string& architecture : wanted) {
    const auto number = architecture.find('_') + 1;  // 0 if there is none
    bool is_known = false;
    for (const int a : known) is_known |= architecture.substr(number) == std::to_string(a);
    if (!is_known) {
      std::cout << "SKIPPED " << architecture << ": NVRTC " << nvrtc.version()
                << " does not know it\n";
      continue;
    }
    const Result<std::string> code = nvrtc.compile(architecture);
    if (!code || !is_complete(*code)) {
      std::cout << "FAILED  " << architecture << ": "
                << (code ? "a kernel is missing" : code.status().message()) << "\n";
      return 1;
    }
    std::cout << "OK      " << architecture << ": " << code->size() << " bytes by NVRTC "
              << nvrtc.version() << "\n";
    ++compiled;
    if (output.empty()) continue;
    std::ofstream file(output, std::ios::binary);
    file.write(code->data(), static_cast<std::streamsize>(code->size()));
    if (!file.flush()) {
      std::cerr << "cannot write " << output << "\n";
      return 1;
    }
  }
  return compiled > 0 ? 0 : kSkipped;
}

int run(const std::vector<std::string>& arguments) {
  std::string library, output;
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool has_value = i + 1 < arguments.size();
    if (arguments[i] == "--library" && has_value) {
      library = arguments[++i];
    } else if (arguments[i] == "--output" && has_value) {
      output = arguments[++i];
    } else if (!arguments[i].starts_with("-")) {
      wanted.push_back(arguments[i]);
    } else {
      wanted.clear();
      break;
    }
  }
  if (wanted.empty()) {
    std::cerr << "usage: riffle_cuda_compile [--library PATH] [--output FILE] ARCHITECTURE...\n";
    return kUsage;
  }
  const Result<Nvrtc> nvrtc = Nvrtc::open(library);
  if (!nvrtc) {
    std::cout << "SKIPPED: " << nvrtc.status().message() << "\n";
    return kSkipped;
  }
  return compile_all(*nvrtc, wanted, output);
}

}  // namespace
}  // namespace riffle::sparse::cuda

int main(int argc, char** argv) {
  return riffle::sparse::cuda::run(std::vector<std::string>(argv + 1, argv + argc));
}

#include "sparse/cuda/nvrtc.h"

#include <dlfcn.h>

#include <cstdlib>
#include <iterator>
#include <memory>
#include <type_traits>

#include "sparse/cuda/code.h"

namespace riffle::sparse::cuda {

// As NVIDIA documents them; a result of 0 is success.
struct Nvrtc::Functions {
  using Program = void*;
  int (*version)(int* major, int* minor);
  int (*number_of_architectures)(int* number);
  int (*architectures)(int* all);
  const char* (*error_string)(int result);
  int (*create)(Program*, const char* text, const char* name, int headers,
                const char* const* header_texts, const char* const* header_names);
  int (*destroy)(Program*);
  int (*compile)(Program, int options, const char* const* option);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
  int (*cubin_size)(Program, std::size_t*);
  int (*cubin)(Program, char*);

  bool find(void* library) {
    const auto one = [&](const char* name, auto& function) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(::dlsym(library, name));
      return function != nullptr;
    };
    return one("nvrtcVersion", version) &&
           one("nvrtcGetNumSupportedArchs", number_of_architectures) &&
           one("nvrtcGetSupportedArchs", architectures) &&
           one("nvrtcGetErrorString", error_string) && one("nvrtcCreateProgram", create) &&
           one("nvrtcDestroyProgram", destroy) && one("nvrtcCompileProgram", compile) &&
           one("nvrtcGetProgramLogSize", log_size) && one("nvrtcGetProgramLog", log) &&
           one("nvrtcGetPTXSize", ptx_size) && one("nvrtcGetPTX", ptx) &&
           one("nvrtcGetCUBINSize", cubin_size) && one("nvrtcGetCUBIN", cubin);
  }
};

namespace {

std::vector<std::string> places() {
  std::vector<std::string> all;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
    all.emplace_back(name);
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      const char* const home = std::getenv(variable);
      if (home == nullptr || *home == '\0') continue;
      for (const char* folder : {"/lib64/", "/lib/"})
        all.push_back(home + (std::string(folder) + name));
    }
  }
  return all;
}

}  // namespace

Result<Nvrtc> Nvrtc::open(const std::string& path) {
  void* library = nullptr;
  std::string problem;
  for (const std::string& place : path.empty() ? places() : std::vector<std::string>{path}) {
    library = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* const why = ::dlerror();
    if (problem.empty()) problem = why != nullptr ? why : place;
  }
  if (library == nullptr) return system_error("no NVRTC: " + problem);
  auto functions = std::make_shared<Functions>();
  if (!functions->find(library)) {
    return system_error("no NVRTC: " + (path.empty() ? "libnvrtc" : path) +
                        " lacks a function, CUDA 11.2 or later is needed");
  }
  return Nvrtc(std::move(functions));
}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  functions_->version(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

std::vector<int> Nvrtc::architectures() const {
  int number = 0;
  if (functions_->number_of_architectures(&number) != 0 || number <= 0) return {};
  std::vector<int> all(static_cast<std::size_t>(number));
  if (functions_->architectures(all.data()) != 0) return {};
  return all;
}

Result<std::string> Nvrtc::compile(const std::string& architecture) const {
  const auto files = source_files();
  std::vector<const char*> texts, names;
  for (const SourceFile& file : files.subspan(1)) {
    texts.push_back(file.text);
    names.push_back(file.name);
  }
  Functions::Program program = nullptr;
  const Functions& f = *functions_;
  const int created = f.create(&program, files[0].text, files[0].name,
                               static_cast<int>(texts.size()), texts.data(), names.data());
  if (created != 0) return system_error(std::string("NVRTC: ") + f.error_string(created));

  const std::string target = "--gpu-architecture=" + architecture;
  // The same bits as the processor's: nothing fused, nothing flushed to zero. Functions without a
  // mark, as lambdas are, run on the device.
  const char* const options[] = {target.c_str(), "--std=c++17", "--fmad=false", "--ftz=false",
                                 "--device-as-default-execution-space"};
  const int compiled = f.compile(program, static_cast<int>(std::size(options)), options);
  const bool is_ptx = architecture.starts_with("compute_");
  const auto text_of = [&](auto size_of, auto get) {
    std::size_t size = 0;
    if (size_of(program, &size) != 0) return std::string();
    std::string text(size, '\0');
    if (get(program, text.data()) != 0) return std::string();
    return text;
  };
  Result<std::string> result = internal_error("NVRTC gave nothing");
  if (compiled != 0) {
    result = system_error("NVRTC " + version() + " for " + architecture + ": " +
                          f.error_string(compiled) + "\n" + text_of(f.log_size, f.log).c_str());
  } else {
    std::string code = is_ptx ? text_of(f.ptx_size, f.ptx) : text_of(f.cubin_size, f.cubin);
    if (is_ptx) code = code.c_str();  // without the final zero
    if (!code.empty()) result = std::move(code);
  }
  f.destroy(&program);
  return result;
}

}  // namespace riffle::sparse::cuda

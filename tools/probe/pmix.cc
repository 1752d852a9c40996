#include "tools/probe/pmix.h"

#ifdef RIFFLE_PMIX
#include <dlfcn.h>
#include <pmix.h>

#include <cstring>
#endif

namespace riffle::tools {

#ifndef RIFFLE_PMIX

Result<std::string> share_by_pmix(int /*rank*/, const std::string& /*word*/, int /*timeout_s*/) {
  return system_error("this riffle was built without PMIx");
}

#else
namespace {

constexpr char kKey[] = "riffle.probe";

// The calls that are used, from the library that is there.
struct Library {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Fence) fence;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Error_string) error_string;

  static Result<Library> load() {
    void* const handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return system_error(dlerror());
    Library l;
    const auto find = [&](const char* name, auto* function) {
      *function = reinterpret_cast<std::remove_pointer_t<decltype(function)> >(dlsym(handle, name));
      return *function != nullptr;
    };
    if (find("PMIx_Init", &l.init) && find("PMIx_Put", &l.put) && find("PMIx_Commit", &l.commit) &&
        find("PMIx_Fence", &l.fence) && find("PMIx_Get", &l.get) &&
        find("PMIx_Finalize", &l.finalize) && find("PMIx_Error_string", &l.error_string)) {
      return l;
    }
    return system_error("libpmix.so.2 lacks a call");
  }
};

void name_into(char* field, std::size_t size, const char* text) {
  std::strncpy(field, text, size - 1);
  field[size - 1] = '\0';
}

Result<std::string> share(const Library& l, const pmix_proc_t& self, const std::string& word,
                          int timeout_s) {
  const auto failed = [&](const char* what, pmix_status_t code) {
    return remote_error(std::string("PMIx: ") + what + ": " + l.error_string(code));
  };
  std::string text = word;
  if (self.rank == 0) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = text.data();
    if (const auto s = l.put(PMIX_GLOBAL, kKey, &value); s != PMIX_SUCCESS) return failed("put", s);
    if (const auto s = l.commit(); s != PMIX_SUCCESS) return failed("commit", s);
  }
  pmix_info_t info[2]{};
  name_into(info[0].key, sizeof info[0].key, PMIX_COLLECT_DATA);
  info[0].value.type = PMIX_BOOL;
  info[0].value.data.flag = true;
  name_into(info[1].key, sizeof info[1].key, PMIX_TIMEOUT);
  info[1].value.type = PMIX_INT;
  info[1].value.data.integer = timeout_s;
  pmix_proc_t all = self;
  all.rank = PMIX_RANK_WILDCARD;
  if (const auto s = l.fence(&all, 1, info, 2); s != PMIX_SUCCESS) return failed("fence", s);
  pmix_proc_t first = self;
  first.rank = 0;
  pmix_value_t* value = nullptr;
  if (const auto s = l.get(&first, kKey, &info[1], 1, &value); s != PMIX_SUCCESS) {
    return failed("get", s);
  }
  if (value == nullptr || value->type != PMIX_STRING || value->data.string == nullptr) {
    return remote_error("PMIx: rank 0 left something else");
  }
  return std::string(value->data.string);  // the value itself stays: this process is short
}

}  // namespace

Result<std::string> share_by_pmix(int rank, const std::string& word, int timeout_s) {
  const Result<Library> library = Library::load();
  if (!library) return library.status();
  pmix_proc_t self{};
  if (const auto s = library->init(&self, nullptr, 0); s != PMIX_SUCCESS) {
    return remote_error(std::string("PMIx: init: ") + library->error_string(s));
  }
  Result<std::string> shared = self.rank == static_cast<pmix_rank_t>(rank)
                                   ? share(*library, self, word, timeout_s)
                                   : remote_error("PMIx and the environment name different ranks");
  library->finalize(nullptr, 0);
  return shared;
}

#endif

}  // namespace riffle::tools

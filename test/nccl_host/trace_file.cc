#include "test/nccl_host/trace_file.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <set>

namespace riffle::host {
namespace {

// gzread passes plain files through. False: the file cannot be read.
bool read_all(const std::string& path, std::string* text) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return false;
  char buffer[65536];
  int n;
  while ((n = gzread(file, buffer, sizeof buffer)) > 0)
    text->append(buffer, static_cast<std::size_t>(n));
  gzclose(file);
  return n == 0;
}

}  // namespace

bool Trace::has(const char* interface, const char* call) const {
  return std::any_of(calls.begin(), calls.end(),
                     [&](const Json& c) { return c["if"] == interface && c["call"] == call; });
}

std::vector<std::string> scenarios(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    names.insert(name.substr(0, name.find(".rank")));
  }
  return {names.begin(), names.end()};
}

Result<Trace> read_trace(const std::string& folder, const std::string& scenario, int rank,
                         bool with_profiler) {
  const std::string path = folder + "/" + scenario + ".rank" + std::to_string(rank) + ".jsonl";
  std::string text;
  if (!read_all(path + ".gz", &text) && !read_all(path, &text)) {
    return system_error("cannot read " + path + "[.gz]");
  }
  Trace trace;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (!with_profiler && line.find("\"if\":\"profiler\"") != std::string::npos) continue;
    Json json = Json::parse(line, nullptr, false);
    if (json.is_discarded()) return invalid_argument(path + ": not JSON: " + line.substr(0, 80));
    if (trace.header.is_null())
      trace.header = std::move(json);
    else
      trace.calls.push_back(std::move(json));
  }
  if (trace.header.is_null()) return invalid_argument(path + " is empty");
  return trace;
}

}  // namespace riffle::host

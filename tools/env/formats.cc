#include "tools/env/formats.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/env/modulefile.h"
#include "tools/env/quoting.h"

namespace riffle::tools {
namespace {

std::string plain_line(const Export& e) { return e.name + "=" + e.value; }

std::string sh_line(const Export& e) {
  return "export " + e.name + "=" + sh_word(e.value) +
         (e.is_list ? "${" + e.name + ":+:$" + e.name + "}" : "");
}

// csh has no ${X:+...}, and replaces the variables of a whole line before it looks at an `if`.
std::string csh_line(const Export& e) {
  const std::string set = "setenv " + e.name + " ";
  if (!e.is_list) return set + csh_word(e.value) + ";";
  return "if (! $?" + e.name + ") " + set + "\"\"; if (\"$" + e.name + "\" != \"\") " + set +
         "\":$" + e.name + "\"; " + set + csh_word(e.value) + "\"$" + e.name + "\";";
}

std::string fish_line(const Export& e) {
  return e.is_list ? "set -gx --path " + e.name + " " + fish_word(e.value) + " $" + e.name
                   : "set -gx " + e.name + " " + fish_word(e.value);
}

std::string conf_line(const Export& e) { return (e.is_list ? "# " : "") + plain_line(e); }

std::string slurm_line(const Export& e) {
  return "export " + e.name + "=" + value_over(e, std::getenv(e.name.c_str()));
}

enum class Comments { kNone, kBehind, kAbove };

// A format of one line per variable.
struct LineFormat {
  const char* name;
  std::string (*line)(const Export&);
  bool has_line_breaks;  // within values
  Comments comments;
  const char* of_lists = "";  // what else a comment on a list says
};

constexpr LineFormat kLineFormats[] = {
    {"sh", sh_line, true, Comments::kBehind},
    {"csh", csh_line, false, Comments::kNone},  // its eval joins all lines
    {"fish", fish_line, true, Comments::kBehind},
    {"nccl.conf", conf_line, false, Comments::kAbove,
     "; only where the job starts: NCCL reads this file too late for the loader"},
    {"docker", plain_line, false, Comments::kAbove, "; replaces the list of the image"},
    {"slurm", slurm_line, false, Comments::kNone},
};

Result<std::string> in_lines(const LineFormat& format, const JobEnvironment& job) {
  std::string text;
  const auto comment = [&](const std::string& words) {
    if (format.comments != Comments::kNone) text += "# " + words + "\n";
  };
  comment(title_of(job));
  for (const Export& e : job.exports) {
    const std::string line = format.line(e);
    if (!format.has_line_breaks && line.find_first_of("\n\r") != std::string::npos) {
      return invalid_argument("format " + std::string(format.name) + ": the value of " + e.name +
                              " has a line break, which that format cannot hold: " + e.value);
    }
    const std::string why = e.why + (e.is_list ? format.of_lists : "");
    if (format.comments == Comments::kAbove) comment(why);
    text += line + (format.comments == Comments::kBehind ? "  # " + why : "") + "\n";
  }
  for (const std::string& note : job.notes) comment(note);
  return text;
}

std::string json_text(const JobEnvironment& job) {
  nlohmann::json variables = nlohmann::json::array();
  for (const Export& e : job.exports) {
    variables.push_back(
        {{"name", e.name}, {"value", e.value}, {"prepend", e.is_list}, {"why", e.why}});
  }
  const nlohmann::json text = {
      {"schema", "riffle-env-1"},
      {"nccl", job.code ? nlohmann::json(release_name(job.code)) : nlohmann::json()},
      {"variables", variables},
      {"notes", job.notes}};
  return text.dump(2) + "\n";
}

struct FileFormat {
  const char* name;
  std::string (*text)(const JobEnvironment&);
};

constexpr FileFormat kFileFormats[] = {
    {"lua", lua_modulefile}, {"tcl", tcl_modulefile}, {"json", json_text}};

}  // namespace

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const LineFormat& f : kLineFormats) names.emplace_back(f.name);
  for (const FileFormat& f : kFileFormats) names.emplace_back(f.name);
  return names;
}

Result<std::string> in_format(const std::string& format, const JobEnvironment& job) {
  for (const LineFormat& f : kLineFormats) {
    if (format == f.name) return in_lines(f, job);
  }
  for (const FileFormat& f : kFileFormats) {
    if (format == f.name) return f.text(job);
  }
  return invalid_argument("there is no format " + format);
}

}  // namespace riffle::tools

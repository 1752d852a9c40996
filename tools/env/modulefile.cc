#include "tools/env/modulefile.h"

#include "plugin/version.h"
#include "tools/env/quoting.h"

namespace riffle::tools {
namespace {

constexpr char kDescription[] =
    "Exact all-reduce in groups that avoid the bottleneck, as an NCCL plugin";

// Modules of other NET plugins. Not hpcx: its MPI may start jobs of Riffle, and NCCL_NET_PLUGIN
// decides between its plugin and this one.
constexpr const char* kOtherPlugins[] = {"aws-ofi-nccl", "nccl-fastsocket",
                                         "nccl-rdma-sharp-plugins"};

std::vector<Export> variables_of(const JobEnvironment& job) {
  std::vector<Export> all = job.exports;
  if (!job.command_folder.empty()) {
    all.insert(all.begin(), {"PATH", job.command_folder, "the riffle command", true});
  }
  return all;
}

std::string help_of(const JobEnvironment& job) {
  std::string text = std::string(kDescription) + ".\n" + title_of(job) + ":";
  for (const Export& e : variables_of(job)) text += "\n  " + e.name + ": " + e.why;
  for (const std::string& note : job.notes) text += "\n" + note;
  return text;
}

std::vector<std::string> facts() {
  return {"Name: riffle", std::string("Version: ") + kVersion,
          std::string("Description: ") + kDescription};
}

}  // namespace

std::string lua_modulefile(const JobEnvironment& job) {
  std::string text =
      "-- Made by `riffle env --format lua`\nhelp(" + lua_string(help_of(job)) + ")\n";
  for (const std::string& fact : facts()) text += "whatis(" + lua_string(fact) + ")\n";
  text += "family(\"nccl_net_plugin\")\n";
  for (const char* other : kOtherPlugins) text += "conflict(" + lua_string(other) + ")\n";
  for (const Export& e : variables_of(job)) {
    text += (e.is_list ? "prepend_path(" : "setenv(") + lua_string(e.name) + ", " +
            lua_string(e.value) + ")\n";
  }
  return text;
}

std::string tcl_modulefile(const JobEnvironment& job) {
  std::string text = "#%Module\n# Made by `riffle env --format tcl`\nproc ModulesHelp {} {\n" +
                     ("  puts stderr " + tcl_word(help_of(job))) + "\n}\n";
  for (const std::string& fact : facts()) text += "module-whatis " + tcl_word(fact) + "\n";
  text += "conflict riffle\n";  // another version
  for (const char* other : kOtherPlugins) text += "conflict " + tcl_word(other) + "\n";
  for (const Export& e : variables_of(job)) {
    text += (e.is_list ? "prepend-path " : "setenv ") + e.name + " " + tcl_word(e.value) + "\n";
  }
  return text;
}

}  // namespace riffle::tools

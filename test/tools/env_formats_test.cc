// tools/env: every format says the same, interpreters read back what was meant, and what a format
// cannot hold is an error.
#include "tools/env/formats.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tools/output_file.h"

namespace riffle::tools::env_formats_test {
namespace {

JobEnvironment job_with(const Export& e) { return {0, {e}, {}, ""}; }

std::string text_of(const std::string& format, const JobEnvironment& job) {
  const auto text = in_format(format, job);
  EXPECT_TRUE(text.is_ok()) << text.status().message();
  return text ? *text : "";
}

JobEnvironment installed() {
  const auto job = job_environment("2.28.9", {"/opt/riffle/lib/libnccl-net-riffle.so"});
  EXPECT_TRUE(job.is_ok()) << job.status().message();
  return *job;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(EnvFormats, AllSetTheSameVariables) {
  const JobEnvironment job = installed();
  ASSERT_GE(job.exports.size(), 5u);
  for (const std::string& format : format_names()) {
    const std::string text = text_of(format, job);
    for (const Export& e : job.exports) {
      EXPECT_TRUE(contains(text, e.name) && contains(text, e.value)) << format << ": " << e.name;
    }
  }
}

TEST(EnvFormats, ShIsForEval) {
  EXPECT_TRUE(text_of("sh", installed())
                  .starts_with("# Riffle under NCCL 2.28.9\n"
                               "export LD_LIBRARY_PATH=/opt/riffle/lib"
                               "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}  # where the loader finds "
                               "libnccl-net-riffle.so\n"
                               "export NCCL_NET_PLUGIN=riffle  # loads "));
}

TEST(EnvFormats, FilesWithoutQuotesHoldOneVariablePerLine) {
  EXPECT_TRUE(contains(text_of("docker", installed()), "\nLD_LIBRARY_PATH=/opt/riffle/lib\n"));
  EXPECT_TRUE(contains(text_of("docker", installed()), "\nNCCL_NET_PLUGIN=riffle\n"));
  // The loader has read its own before NCCL reads this.
  EXPECT_TRUE(contains(text_of("nccl.conf", installed()), "\n# LD_LIBRARY_PATH=/opt/riffle/lib\n"));
  EXPECT_TRUE(contains(text_of("nccl.conf", installed()), "\nNCCL_NET_PLUGIN=riffle\n"));
}

TEST(EnvFormats, SlurmKeepsTheListOfTheTask) {
  const Export e = {"RIFFLE_TEST_LIST", "/opt/two words", "", true};
  setenv("RIFFLE_TEST_LIST", "/usr/x:/usr/y", 1);
  EXPECT_EQ(text_of("slurm", job_with(e)),
            "export RIFFLE_TEST_LIST=/opt/two words:/usr/x:/usr/y\n");
  unsetenv("RIFFLE_TEST_LIST");
  EXPECT_EQ(text_of("slurm", job_with(e)), "export RIFFLE_TEST_LIST=/opt/two words\n");
}

TEST(EnvFormats, JsonHasASchema) {
  const auto json = nlohmann::json::parse(text_of("json", installed()));
  EXPECT_EQ(json.at("schema"), "riffle-env-1");
  EXPECT_EQ(json.at("nccl"), "2.28.9");
  EXPECT_EQ(json.at("variables")[0].at("value"), "/opt/riffle/lib");
  EXPECT_EQ(json.at("variables")[0].at("prepend"), true);
  EXPECT_EQ(json.at("variables")[1].at("prepend"), false);
}

TEST(EnvFormats, ModulesPrependAndExcludeOtherPlugins) {
  JobEnvironment job = installed();
  job.command_folder = "/opt/riffle/bin";
  const std::string lua = text_of("lua", job), tcl = text_of("tcl", job);
  EXPECT_TRUE(contains(lua, "\nprepend_path(\"LD_LIBRARY_PATH\", \"/opt/riffle/lib\")\n")) << lua;
  EXPECT_TRUE(contains(lua, "\nprepend_path(\"PATH\", \"/opt/riffle/bin\")\n")) << lua;
  EXPECT_TRUE(contains(lua, "\nfamily(\"nccl_net_plugin\")\n")) << lua;
  EXPECT_TRUE(contains(lua, "\nconflict(\"aws-ofi-nccl\")\n")) << lua;
  EXPECT_TRUE(tcl.starts_with("#%Module")) << tcl;
  EXPECT_TRUE(contains(tcl, "\nprepend-path LD_LIBRARY_PATH /opt/riffle/lib\n")) << tcl;
  EXPECT_TRUE(contains(tcl, "\nconflict aws-ofi-nccl\n")) << tcl;
}

TEST(EnvFormats, WhatAFormatCannotHoldIsNamed) {
  const JobEnvironment job = job_with({"RIFFLE_TEST", "two\nlines", ""});
  for (const std::string format : {"csh", "nccl.conf", "docker", "slurm"}) {
    const auto text = in_format(format, job);
    ASSERT_FALSE(text.is_ok()) << format;
    EXPECT_TRUE(contains(text.status().message(), format)) << text.status().message();
    EXPECT_TRUE(contains(text.status().message(), "RIFFLE_TEST")) << text.status().message();
  }
  EXPECT_FALSE(in_format("toml", job).is_ok());
  EXPECT_FALSE(job_environment("", {"/opt/a:b/libnccl-net-riffle.so"}).is_ok());
  EXPECT_FALSE(job_environment("1.0", {"/opt/riffle/lib/libnccl-net-riffle.so"}).is_ok());
  const PluginPlace comma = {.file = "/opt/a,b/libnccl-net-riffle.so", .has_links = false};
  EXPECT_FALSE(job_environment("", comma).is_ok());
}

std::string value_of(const JobEnvironment& job, const std::string& variable) {
  for (const Export& e : job.exports) {
    if (e.name == variable) return e.value;
  }
  return "";
}

// A wheel: one file, no links beside it.
TEST(EnvFormats, OneFileWithoutLinksIsNamedByItsPath) {
  const std::string file = "/venv/riffle/lib/libnccl-net-riffle.so";
  const auto job = [&](const char* release) {
    return *job_environment(release, {.file = file, .has_links = false});
  };
  EXPECT_EQ(value_of(job("2.27.5"), "NCCL_NET_PLUGIN"), file);
  EXPECT_EQ(value_of(job("2.27.5"), "NCCL_TUNER_PLUGIN"), file);
  EXPECT_EQ(value_of(job("2.27.5"), "NCCL_PROFILER_PLUGIN"), file);
  EXPECT_EQ(value_of(job("2.27.5"), "LD_LIBRARY_PATH"), "");
  // Before 2.21 NET has no path, and a set for all releases is for these, too.
  for (const char* release : {"2.20.5", ""}) {
    EXPECT_EQ(value_of(job(release), "NCCL_NET_PLUGIN"), "riffle");
    EXPECT_EQ(value_of(job(release), "NCCL_TUNER_PLUGIN"), file);
    EXPECT_EQ(value_of(job(release), "LD_LIBRARY_PATH"), "/venv/riffle/lib");
  }
}

TEST(EnvFormats, FoldersOfTheSystemStayOutOfTheLoadersPath) {
  const auto job =
      job_environment("", {.file = "/usr/lib64/libnccl-net-riffle.so", .is_searched = true});
  ASSERT_TRUE(job.is_ok());
  EXPECT_EQ(value_of(*job, "LD_LIBRARY_PATH"), "");
  EXPECT_EQ(value_of(*job, "NCCL_NET_PLUGIN"), "riffle");
  for (const std::string& note : job->notes) EXPECT_NE(note, kPluginMissing);
}

std::string output_of(const std::string& command) {
  std::string out;
  std::FILE* pipe = popen(command.c_str(), "r");
  for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  pclose(pipe);
  return out;
}

// A program that reads the format's text, FILE, and prints the variable that came of it, VALUE.
struct Interpreter {
  std::string format;
  std::string programs;  // names that are tried in turn
  std::string script;
  friend void PrintTo(const Interpreter& i, std::ostream* out) { *out << i.format; }
};

const Interpreter kInterpreters[] = {
    {"sh", "sh", ". FILE\nprintenv VALUE\n"},
    {"csh", "csh tcsh", "eval \"`cat FILE`\"\nprintenv VALUE\n"},
    {"fish", "fish", "cat FILE | source\nprintenv VALUE\n"},
    // The part of a module system: what sets variables is defined before the file is read.
    {"tcl", "tclsh tclsh8.6",
     "proc module-whatis args {}\n"
     "proc conflict args {}\n"
     "proc setenv {name value} {if {$name eq {VALUE}} {puts $value}}\n"
     "proc prepend-path {name value} {\n"
     "  if {[info exists ::env($name)]} {append value : $::env($name)}\n"
     "  setenv $name $value\n"
     "}\n"
     "source FILE\n"
     "set file [open /dev/null w]\n"
     "rename puts said\n"
     "proc puts {stream text} {said $::file $text}\n"
     "ModulesHelp\n"},
    {"lua", "lua lua5.4 lua5.3 lua5.2 luajit",
     "function ignore() end\n"
     "help, whatis, family, conflict = ignore, ignore, ignore, ignore\n"
     "function setenv(name, value) if name == 'VALUE' then print(value) end end\n"
     "function prepend_path(name, value)\n"
     "  local present = os.getenv(name)\n"
     "  setenv(name, present and value .. ':' .. present or value)\n"
     "end\n"
     "dofile('FILE')\n"},
};

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

class EnvInterpreters : public testing::TestWithParam<Interpreter> {
 protected:
  void SetUp() override {
    program_ = output_of("for p in " + GetParam().programs +
                         "; do command -v $p && break; done 2>&1 | tr -d '\\n'");
    if (program_.empty()) GTEST_SKIP() << "not installed: " << GetParam().programs;
    base_ = testing::TempDir() + "riffle_env_" + std::to_string(getpid()) + GetParam().format;
  }
  void TearDown() override {
    unlink(text_file().c_str());
    unlink(script_file().c_str());
  }

  // The variable of this name, as the interpreter has it after the text.
  std::string read_back(const Export& e) {
    std::string script = GetParam().script;
    replace_all(script, "FILE", text_file());
    replace_all(script, "VALUE", e.name);
    EXPECT_TRUE(write_file(text_file(), text_of(GetParam().format, job_with(e))).is_ok());
    EXPECT_TRUE(write_file(script_file(), script).is_ok());
    std::string out = output_of(program_ + " " + script_file() + " 2>&1");
    if (out.ends_with('\n')) out.pop_back();
    return out;
  }

 private:
  std::string text_file() const { return base_ + ".text"; }
  std::string script_file() const { return base_ + ".script"; }
  std::string program_, base_;
};

TEST_P(EnvInterpreters, ReadBackEveryCharacter) {
  std::vector<std::string> values = {"riffle",
                                     "",
                                     "two  words ",
                                     "it's",
                                     "\"quoted\"",
                                     "$HOME ${HOME} $(id) `id`",
                                     "back\\slash\\",
                                     "100%",
                                     "[list] {brace} }{",
                                     "a;b#c&d|e<f>(g)",
                                     "#first",
                                     "!! !event ~ * ? ^ =1",
                                     "-option",
                                     "tab\there",
                                     "\xc3\xa9t\xc3\xa9"};
  if (GetParam().format != "csh") values.push_back("two\nlines\\\n\n end");
  for (const std::string& value : values) {
    EXPECT_EQ(read_back({"RIFFLE_TEST_VALUE", value, "what it is for"}), value);
  }
}

TEST_P(EnvInterpreters, PrependToLists) {
  const Export e = {"RIFFLE_TEST_PATH", "/opt/it's $one", "what it is for", true};
  unsetenv("RIFFLE_TEST_PATH");
  EXPECT_EQ(read_back(e), "/opt/it's $one");
  setenv("RIFFLE_TEST_PATH", "/usr/lib:/usr/two words", 1);
  EXPECT_EQ(read_back(e), "/opt/it's $one:/usr/lib:/usr/two words");
  unsetenv("RIFFLE_TEST_PATH");
}

INSTANTIATE_TEST_SUITE_P(Formats, EnvInterpreters, testing::ValuesIn(kInterpreters),
                         [](const auto& of) { return of.param.format; });

}  // namespace
}  // namespace riffle::tools::env_formats_test

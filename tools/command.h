// The subcommands of `riffle`. Each adds itself to the command line and, when chosen, runs and
// leaves its exit code: 0 done, 1 found a problem or failed, 2 wrong usage.
#pragma once

#include <CLI/CLI.hpp>

#include "topology/base/status.h"

namespace riffle::tools {

inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;

void add_bench(CLI::App& app, int& exit_code);
void add_cluster(CLI::App& app, int& exit_code);
void add_completion(CLI::App& app, int& exit_code);
void add_config(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_draw(CLI::App& app, int& exit_code);
void add_env(CLI::App& app, int& exit_code);
void add_explain(CLI::App& app, int& exit_code);
void add_man(CLI::App& app, int& exit_code);
void add_metrics(CLI::App& app, int& exit_code);
void add_order(CLI::App& app, int& exit_code);
void add_plan(CLI::App& app, int& exit_code);
void add_probe(CLI::App& app, int& exit_code);
void add_run(CLI::App& app, int& exit_code);
void add_sim(CLI::App& app, int& exit_code);
void add_top(CLI::App& app, int& exit_code);
void add_topo(CLI::App& app, int& exit_code);
void add_trace(CLI::App& app, int& exit_code);

// Prints the message and returns the exit code that fits its kind.
int report(const Status& status);

}  // namespace riffle::tools

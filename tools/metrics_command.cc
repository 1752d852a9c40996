// `riffle metrics`: what running jobs write into their records, for Prometheus.
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <ctime>
#include <memory>

#include "tools/command.h"
#include "tools/live/metrics.h"
#include "tools/live/metrics_server.h"
#include "tools/live/record_follower.h"
#include "tools/output_file.h"

namespace riffle::tools {
namespace {

struct MetricsArguments {
  std::vector<std::string> paths;
  std::string textfile, listen;
  bool once = false;
  double every_s = 15, window_s = 30, forget_s = 900;
};

// What cannot be read for a while, as a folder that is made anew, is reported and read again later.
std::string page_of(RecordFollower& record, const MetricsArguments& options) {
  if (Status s = record.look(); !s) {
    std::fprintf(stderr, "riffle metrics: %s\n", s.message().c_str());
  }
  return metrics_text(record, options.window_s, unix_now_s());
}

// The file goes when its writer ends: what stands in it would stay true for ever.
int write_on(RecordFollower& record, const MetricsArguments& options) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGHUP);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const auto seconds = static_cast<time_t>(options.every_s);
  const timespec pause{seconds,
                       static_cast<long>(1e9 * (options.every_s - static_cast<double>(seconds)))};
  bool was_written = false;
  do {
    const Status written = replace_file(options.textfile, page_of(record, options));
    if (!written && !was_written) return report(written);
    was_written = true;
    if (written) continue;
    // Such as a disk that is full for a while: what stands there is not true any more.
    ::unlink(options.textfile.c_str());
    std::fprintf(stderr, "riffle metrics: %s\n", written.message().c_str());
  } while (sigtimedwait(&ends, nullptr, &pause) < 0);
  ::unlink(options.textfile.c_str());
  return 0;
}

int run(const MetricsArguments& options) {
  RecordFollower record(options.paths,
                        {.window_s = options.window_s, .forget_s = options.forget_s});
  if (Status s = record.look(); !s) return report(s);
  if (!options.listen.empty()) {
    return report(serve_metrics(
        options.listen, [&] { return page_of(record, options); },
        [](const std::string& address) {
          std::printf("http://%s/metrics\n", address.c_str());
          std::fflush(stdout);
        }));
  }
  if (options.textfile.empty()) {
    std::fputs(page_of(record, options).c_str(), stdout);
    return 0;
  }
  if (options.once) return report(replace_file(options.textfile, page_of(record, options)));
  return write_on(record, options);
}

}  // namespace

void add_metrics(CLI::App& app, int& exit_code) {
  auto o = std::make_shared<MetricsArguments>();
  CLI::App* sub = app.add_subcommand("metrics", "What running jobs do, as metrics for Prometheus");
  sub->add_option("record", o->paths, "Record files or folders, of as many nodes as there are")
      ->required();
  auto* textfile = sub->add_option("--textfile", o->textfile,
                                   "Write them into this file again and again, for node_exporter");
  sub->add_option("--listen", o->listen, "Answer HTTP at ADDRESS:PORT/metrics; port 0: any")
      ->excludes(textfile);
  sub->add_flag("--once", o->once, "Write the file once")->needs(textfile);
  sub->add_option("--every", o->every_s, "Seconds from file to file")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  sub->add_option("--window", o->window_s, "Seconds that ratios are of")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  sub->add_option("--forget", o->forget_s,
                  "Seconds after its last line in which a communicator is still there")
      ->check(CLI::Range(60.0, 1e7))
      ->capture_default_str();
  sub->footer(
      "Without --textfile and --listen they are printed, once. The file is replaced as a whole "
      "and\n"
      "goes when the command ends, unless it was written --once. deploy/monitoring has a "
      "dashboard\n"
      "and alert rules.\n"
      "Exit code: 0 ended by SIGINT, SIGTERM or SIGHUP, or done; 1 cannot write or listen; 2 wrong "
      "usage.\n"
      "Examples:\n"
      "  riffle metrics /shared/run1 --listen 127.0.0.1:9817\n"
      "  riffle metrics /shared/run1 --textfile /var/lib/node_exporter/riffle.prom\n"
      "  riffle metrics /shared/run1 | promtool check metrics");
  sub->callback([o, &exit_code] { exit_code = run(*o); });
}

}  // namespace riffle::tools

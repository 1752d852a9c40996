#include "tools/gathering_options.h"

#include "tools/probe/peer.h"

namespace riffle::tools {

void add_gathering_options(CLI::App* command, Gathering* gathering) {
  command
      ->add_option(
          "--ssh", gathering->ssh,
          "How to run a command on a host: words, %h is the host, which otherwise comes last")
      ->capture_default_str();
  command->add_option("--riffle", gathering->riffle,
                      "This command on the hosts; its own path by default");
  command->add_option("--rendezvous", gathering->rendezvous,
                      "Under a launcher: rank 0's HOST:PORT, where neither it nor Slurm tells");
  command
      ->add_option("--timeout", gathering->timeout_s,
                   "Seconds for hosts to come, and for each attempt to measure")
      ->check(CLI::Range(5, kMostTimeoutMs / 1000))
      ->capture_default_str();
}

}  // namespace riffle::tools

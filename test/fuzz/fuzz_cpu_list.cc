// Lists of CPUs of any text (RIFFLE_CPUS, sysfs): a list that reads back the same, or an error that
// says what is accepted.
#include <string>

#include "test/fuzz/target.h"
#include "topology/host/cpu_list.h"

namespace riffle::fuzz {

std::vector<Bytes> seeds() {
  std::vector<Bytes> out;
  for (const std::string text : {"0-3,8,10-11\n", "2,4-7", " 0 - 8191 , 17"}) {
    out.emplace_back(text.begin(), text.end());
  }
  return out;
}

void try_input(std::span<const std::uint8_t> input) {
  const Result<CpuList> cpus = parse_cpu_list(std::string(input.begin(), input.end()));
  if (!cpus) {
    const std::string& message = cpus.status().message();
    require(message.find("8191") != std::string::npos || message.find("8192") != std::string::npos,
            "error without the range: " + message);
    return;
  }
  for (std::size_t i = 0; i < cpus->size(); ++i) {
    require((*cpus)[i] >= 0 && (*cpus)[i] < kMaxCpus, "a CPU out of range");
    require(i == 0 || (*cpus)[i - 1] < (*cpus)[i], "not ascending");
  }
  if (cpus->empty()) return;
  const Result<CpuList> again = parse_cpu_list(to_text(*cpus));
  require(again.is_ok() && *again == *cpus, "reads back differently: " + to_text(*cpus));
}

}  // namespace riffle::fuzz

// Traces of any text: an error that names what is wrong, or spans of which clocks, waits and a
// picture can be made, whatever they say.
#include <sstream>
#include <string>

#include "test/fuzz/target.h"
#include "tools/trace/chrome.h"
#include "tools/trace/trace_lines.h"

namespace riffle::fuzz {

std::vector<Bytes> seeds() {
  const std::string text =
      R"({"type":"process","t":1.5,"riffle":"0","host":"h","pid":1}
{"type":"trace","t":1.5,"comm":"ab","rank":0,"size":2,"every":1,"room_spans":9,"time_of_day_offset_ns":7,"hosts":["a","b"]}
{"type":"trace","t":1.5,"comm":"ab","rank":1,"size":2,"every":1,"room_spans":9,"time_of_day_offset_ns":-7,"hosts":["a","b"]}
{"type":"event","comm":"ab","rank":0,"at_ns":3,"kind":"plan","name":"ring","why":"it is fast"}
{"type":"spans","comm":"ab","rank":0,"at_ns":1000,"dropped":1,"spans":[[2,0,0,0,0,0,1,0,64,0,20],[4,0,0,1,0,0,1,64,64,50,0],[6,0,0,1,0,0,1,64,64,-99,2],[1,0,0,0,0,3,-1,0,128,0,99],[0,0,0,0,0,0,-1,0,128,0,100]]}
{"type":"spans","comm":"ab","rank":1,"at_ns":900,"dropped":0,"spans":[[4,0,0,0,0,0,0,0,64,10,20],[2,0,0,1,0,0,0,64,64,50,0],[5,0,0,0,0,0,0,0,9,70,9]]}
{"type":"dropped","lines":3}
)";
  return {Bytes(text.begin(), text.end())};
}

void try_input(std::span<const std::uint8_t> input) {
  tools::trace::TraceLines lines;
  std::istringstream in(std::string(input.begin(), input.end()));
  for (std::string line; std::getline(in, line);) {
    const Status added = lines.add("file", line);
    require(added.is_ok() || !added.message().empty(), "an error without a word");
  }
  if (lines.is_empty()) return;
  const auto job = lines.take("");
  if (!job) return require(!job.status().message().empty(), "an error without a word");
  const auto frames = tools::trace::deliveries(*job);
  std::ostringstream picture;
  tools::trace::write_chrome(*job, tools::trace::compare_clocks(*job, frames), frames, picture);
  require(picture.str().ends_with("]}\n"), "a picture that does not end");
}

}  // namespace riffle::fuzz

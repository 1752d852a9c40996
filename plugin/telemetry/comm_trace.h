// The lines that one communicator writes into the trace (docs/commands.md, "riffle trace"):
//
//   trace    the nodes that take part, every which all-reduce is traced, room for spans, and what
//   to
//            add to this node's clock to have the time of day; stands in front of every file
//   spans    what happened (span_log.h), up to kSpansPerLine times
//   event    a plan, a mode, a loss, a failure: when and why
//
// All times are ns of the node's monotonic clock, which no two nodes share: readers estimate the
// differences from frames (tools/trace). Threads: the communicator's.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/telemetry/recorder.h"
#include "plugin/telemetry/span_log.h"

namespace riffle {

class CommTrace {
 public:
  static constexpr std::size_t kSpansPerLine = 512;

  // Null where nothing is traced.
  static std::unique_ptr<CommTrace> begin(const RecordOptions& options, std::uint64_t comm_id,
                                          int rank, int size);
  // `spans`: there is room for so many.
  CommTrace(std::shared_ptr<Recorder> recorder, std::uint32_t every, std::uint64_t comm_id,
            int rank, int size, std::size_t spans = SpanLog::kSpans);
  ~CommTrace();

  // `hosts` by rank.
  void connected(std::uint64_t now_ns, const std::vector<std::string>& hosts);
  void event(std::uint64_t now_ns, std::string_view kind, std::string_view name,
             std::string_view why);
  void flush() { recorder_->flush(); }

  // Where spans go; as long as this lives.
  SpanLog* spans() const;
  std::uint32_t every() const { return every_; }

 private:
  class Spans;

  const std::shared_ptr<Recorder> recorder_;
  const std::uint32_t every_;
  const std::string key_;
  const int rank_, size_;
  const std::shared_ptr<Spans> spans_;
};

}  // namespace riffle

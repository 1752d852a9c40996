#include "plugin/telemetry/comm_trace.h"

#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "plugin/telemetry/json_line.h"
#include "plugin/telemetry/process_line.h"

namespace riffle {
namespace {

// To be added to the clock's `now_ns`.
std::int64_t time_of_day_offset_ns(std::uint64_t now_ns) {
  using namespace std::chrono;
  const auto since_1970 = system_clock::now().time_since_epoch();
  return duration_cast<nanoseconds>(since_1970).count() - static_cast<std::int64_t>(now_ns);
}

// [kind, term, number, level, group, lane, peer, offset, bytes, begin - base, end - begin]: most of
// what is written, so in few steps.
std::string span_text(const Span& span, std::uint64_t base_ns) {
  std::array<char, 256> text;
  char* at = text.data();
  char separator = '[';
  const auto add = [&](auto number) {
    *at++ = std::exchange(separator, ',');
    at = std::to_chars(at, text.data() + text.size() - 1, number).ptr;
  };
  add(static_cast<int>(span.kind));
  add(span.term);
  add(span.number);
  add(static_cast<int>(span.level));
  add(span.group);
  add(static_cast<int>(span.lane));
  add(span.peer);
  add(span.offset);
  add(span.bytes);
  add(static_cast<std::int64_t>(span.begin_ns - base_ns));
  add(span.end_ns - span.begin_ns);
  *at++ = ']';
  return {text.data(), at};
}

}  // namespace

// From numbers to text on the recorder's thread.
class CommTrace::Spans final : public LineSource {
 public:
  Spans(std::string key, int rank, std::size_t room)
      : log(room), key_(std::move(key)), rank_(rank) {}

  void put_lines(const Put& put) override {
    Span span;
    bool has_span = log.take(&span);
    while (has_span || log.dropped() != told_dropped_) {
      JsonLine line;
      line.add("type", "spans").add("comm", key_).add("rank", rank_);
      line.add("at_ns", has_span ? span.begin_ns : 0);
      told_dropped_ = log.dropped();
      line.add("dropped", told_dropped_).open("spans", '[');
      const std::uint64_t base_ns = span.begin_ns;
      for (std::size_t n = 0; has_span && n < kSpansPerLine; ++n) {
        line.raw("", span_text(span, base_ns));
        has_span = log.take(&span);
      }
      put(line.close(']').take());
    }
  }

  SpanLog log;

 private:
  const std::string key_;
  const int rank_;
  std::uint64_t told_dropped_ = 0;
};

std::unique_ptr<CommTrace> CommTrace::begin(const RecordOptions& options, std::uint64_t comm_id,
                                            int rank, int size) {
  if (options.trace_every == 0) return nullptr;
  std::shared_ptr<Recorder> recorder = Recorder::acquire(options, Recorder::Content::kTrace);
  if (!recorder) return nullptr;
  return std::make_unique<CommTrace>(std::move(recorder), options.trace_every, comm_id, rank, size);
}

CommTrace::CommTrace(std::shared_ptr<Recorder> recorder, std::uint32_t every, std::uint64_t comm_id,
                     int rank, int size, std::size_t spans)
    : recorder_(std::move(recorder)),
      every_(every),
      key_(hex16(comm_id)),
      rank_(rank),
      size_(size),
      spans_(std::make_shared<Spans>(key_, rank, spans)) {
  recorder_->write_standing("", process_line());
  recorder_->add_source(spans_);
}

CommTrace::~CommTrace() { recorder_->drop_standing(key_); }

SpanLog* CommTrace::spans() const { return &spans_->log; }

void CommTrace::connected(std::uint64_t now_ns, const std::vector<std::string>& hosts) {
  JsonLine line;
  line.add("type", "trace").raw("t", line_time()).add("comm", key_).add("rank", rank_);
  line.add("size", size_).add("every", std::uint64_t{every_});
  line.add("room_spans", std::uint64_t{spans_->log.room()});
  line.add("time_of_day_offset_ns", time_of_day_offset_ns(now_ns));
  add_hosts(line, hosts);
  recorder_->write_standing(key_, line.take());
}

void CommTrace::event(std::uint64_t now_ns, std::string_view kind, std::string_view name,
                      std::string_view why) {
  JsonLine line;
  line.add("type", "event").add("comm", key_).add("rank", rank_).add("at_ns", now_ns);
  line.add("kind", kind).add("name", name).add("why", why);
  recorder_->write(line.take());
}

}  // namespace riffle

#include "tracefs/export/perfetto.h"

#include <array>
#include <cstdio>
#include <string>
#include <unordered_set>

#include "tracefs/base/clock.h"
#include "tracefs/base/version.h"
#include "tracefs/export/lanes.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

// Threads that are remembered; names of others are repeated.
constexpr size_t kMaxThreads = 100'000;

class PerfettoExporter final : public Exporter {
 public:
  explicit PerfettoExporter(OutputBuffer& out) : out_(out) {}

  void Write(const format::Record& record) override {
    const Event& event = record.event;
    // Without a time it has no place; before it has run it has no end.
    if (record.time_resolution_ns == 0 || event.before) {
      ++left_out_;
      return;
    }
    if (!origin_known_) origin_ns_ = record.real_ns;
    origin_known_ = true;
    line_.clear();
    const uint64_t pid = event.GetOr0(Field::kPid);
    const uint64_t tid = event.Has(Field::kTid) ? event.Get(Field::kTid) : pid;
    Name(record, pid, tid);
    const uint64_t length = event.GetOr0(Field::kLatency);
    const uint64_t begin = record.real_ns;
    const bool nests =
        tid != 0 && lanes_.Find(pid << 32 | tid, begin, begin + length) == 0;
    if (nests) {
      Begin("X", event, begin, pid, tid);
      line_ += ",\"dur\":";
      AppendMicros(static_cast<int64_t>(length), &line_);
      PutArguments(record);
      line_ += '}';
    } else {
      const std::string id = std::to_string(++async_);
      Begin("b", event, begin, pid, tid);
      line_ += ",\"id\":\"" + id + "\"";
      PutArguments(record);
      line_ += '}';
      Begin("e", event, begin + length, pid, tid);
      line_ += ",\"id\":\"" + id + "\"}";
    }
    out_.Append(line_);
  }

  void Summarize(const ExportSummary& summary) override {
    for (const format::TraceContext* trace : summary.traces) {
      for (const auto& [reason, count] : trace->stats.losses) {
        lost_ += lost_.empty() ? "" : ",";
        AppendJsonString(TerminalText(trace->name + ": " + reason), &lost_);
        lost_ += ':' + std::to_string(count);
      }
    }
  }

  void Finish() override {
    out_.Append(any_ ? "\n]" : "{\"traceEvents\":[]");
    out_.Append(
        ",\"displayTimeUnit\":\"ns\",\"otherData\":{\"converter\":"
        "\"tracefs-dump " +
        std::string(kVersion) + "\",\"origin_ns\":\"" +
        std::to_string(origin_ns_) + "\",\"lost\":{" + lost_ + "}}}\n");
  }

  uint64_t left_out() const override { return left_out_; }

 private:
  // Once for each thread.
  void Name(const format::Record& record, uint64_t pid, uint64_t tid) {
    if (named_.size() >= kMaxThreads) named_.clear();
    if (!named_.insert(pid << 32 | tid).second) return;
    if (!record.HasText(Field::kComm)) return;
    const std::string name = TerminalText(record.Text(Field::kComm));
    Name("process_name", pid, tid, name);
    Name("thread_name", pid, tid, name);
  }

  void Name(std::string_view what, uint64_t pid, uint64_t tid,
            const std::string& name) {
    Separate();
    ((line_ += "{\"ph\":\"M\",\"name\":\"") += what) += "\",\"pid\":";
    line_ += std::to_string(pid) + ",\"tid\":" + std::to_string(tid) +
             ",\"args\":{\"name\":";
    AppendJsonString(name, &line_);
    line_ += "}}";
  }

  void Separate() {
    line_ += any_ ? ",\n" : "{\"traceEvents\":[\n";
    any_ = true;
  }

  void Begin(std::string_view phase, const Event& event, uint64_t at_ns,
             uint64_t pid, uint64_t tid) {
    Separate();
    ((line_ += "{\"ph\":\"") += phase) += "\",\"cat\":\"fs\",\"name\":\"";
    line_ += OpName(event.op);
    line_ += "\",\"pid\":" + std::to_string(pid) +
             ",\"tid\":" + std::to_string(tid) + ",\"ts\":";
    AppendMicros(static_cast<int64_t>(at_ns - origin_ns_), &line_);
  }

  static void AppendMicros(int64_t ns, std::string* out) {
    std::array<char, 48> text;
    const uint64_t size =
        ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
    snprintf(text.data(), text.size(), "%s%llu.%03llu", ns < 0 ? "-" : "",
             static_cast<unsigned long long>(size / kNsPerUs),
             static_cast<unsigned long long>(size % kNsPerUs));
    *out += text.data();
  }

  void PutArguments(const format::Record& record) {
    const Event& event = record.event;
    const TableRow row(record);
    line_ += ",\"args\":{\"uid\":" + std::to_string(event.GetOr0(Field::kUid));
    const auto text = [this](std::string_view key, std::string_view value) {
      if (value.empty()) return;
      ((line_ += ",\"") += key) += "\":";
      AppendJsonString(TerminalText(value), &line_);
    };
    const auto number = [&](std::string_view key, Field field) {
      if (!event.Has(field)) return;
      ((line_ += ",\"") += key) += "\":";
      line_ += Info(field).type == FieldType::kSigned
                   ? std::to_string(static_cast<int64_t>(event.Get(field)))
                   : std::to_string(event.Get(field));
    };
    text("path", row.path().empty() ? event.name : row.path());
    text("path2", row.path2().empty() ? event.new_name : row.path2());
    number("inode", Field::kInode);
    number("fh", Field::kFh);
    number("offset", Field::kOffset);
    number("length", Field::kLength);
    number("result", Field::kResult);
    if (row.failed()) {
      const uint64_t error = event.Get(Field::kErrno);
      const std::string_view name = ErrnoName(error);
      text("errno", name.empty() ? std::to_string(error) : std::string(name));
    }
    line_ += '}';
  }

  OutputBuffer& out_;
  bool any_ = false;
  bool origin_known_ = false;
  uint64_t origin_ns_ = 0;
  uint64_t async_ = 0;
  uint64_t left_out_ = 0;
  Lanes lanes_;
  std::unordered_set<uint64_t> named_;
  std::string line_;
  std::string lost_;
};

}  // namespace

std::unique_ptr<Exporter> MakePerfettoExporter(OutputBuffer& out,
                                               const ExportOptions&) {
  return std::make_unique<PerfettoExporter>(out);
}

}  // namespace tracefs

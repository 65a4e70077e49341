#include "tracefs/export/xray.h"

#include <algorithm>
#include <queue>
#include <string>

#include "tracefs/base/append_le.h"
#include "tracefs/export/xray_calls.h"

namespace tracefs {
namespace {

// Kinds of records.
constexpr uint8_t kExit = 1;
constexpr uint8_t kEnterWithArguments = 3;

class BasicExporter final : public XrayExporter {
 public:
  BasicExporter(OutputBuffer& out, const ExportOptions& options)
      : XrayExporter(out, options) {
    PutHeader(3, 0, 0);
  }

  // Only the processor that it names has a place.
  void WriteProcess(const ProcessRecord& record) override {
    XrayExporter::WriteProcess(record);
    Exporter::WriteProcess(record);
  }

 protected:
  void Put(const FunctionCall& call) override {
    EndCalls(call.begin);
    PutRecord(call, kEnterWithArguments, call.begin);
    PutArgument(call, call.inode);
    PutArgument(call, static_cast<uint64_t>(call.result));
    open_.push({call, number_++});
  }
  void End() override { EndCalls(UINT64_MAX); }

 private:
  struct Open {
    FunctionCall call;
    uint64_t number;
    // The next to end is on top; of those that end together, the innermost.
    friend bool operator<(const Open& a, const Open& b) {
      return a.call.end != b.call.end ? a.call.end > b.call.end
                                      : a.number < b.number;
    }
  };

  void EndCalls(uint64_t until) {
    while (!open_.empty() && open_.top().call.end <= until) {
      PutRecord(open_.top().call, kExit, open_.top().call.end);
      open_.pop();
    }
  }

  void PutRecord(const FunctionCall& call, uint8_t kind, uint64_t tsc) {
    std::string& record = record_;
    record.clear();
    AppendLe<uint16_t>(0, &record);
    record += static_cast<char>(std::min<uint16_t>(call.cpu, UINT8_MAX));
    record += static_cast<char>(kind);
    AppendLe(call.function, &record);
    AppendLe(tsc, &record);
    AppendLe(call.tid, &record);
    AppendLe(call.pid, &record);
    AppendLe<uint64_t>(0, &record);
    out().Append(record);
  }

  // Belongs to the entry before it.
  void PutArgument(const FunctionCall& call, uint64_t argument) {
    std::string& record = record_;
    record.clear();
    AppendLe<uint16_t>(1, &record);
    AppendLe<uint16_t>(0, &record);
    AppendLe(call.function, &record);
    AppendLe(call.tid, &record);
    AppendLe(call.pid, &record);
    AppendLe(argument, &record);
    AppendLe<uint64_t>(0, &record);
    out().Append(record);
  }

  std::priority_queue<Open> open_;
  uint64_t number_ = 0;
  std::string record_;
};

}  // namespace

std::unique_ptr<Exporter> MakeXrayBasicExporter(OutputBuffer& out,
                                                const ExportOptions& options) {
  return std::make_unique<BasicExporter>(out, options);
}

}  // namespace tracefs

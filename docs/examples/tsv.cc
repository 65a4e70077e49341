// When, what and where, with tabs between.
#include "tracefs/export/tsv.h"

#include <string>

#include "tracefs/feed/alarm_lines.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

class TsvExporter final : public Exporter {
 public:
  explicit TsvExporter(OutputBuffer& out) : out_(out) {}

  void Write(const format::Record& record) override {
    out_.Append(Line(record.real_ns, OpName(record.event.op),
                     record.Text(Field::kPath)));
  }
  std::string AlarmLine(const format::AlarmRecord& record) override {
    const uint64_t at =
        record.operation == nullptr ? 0 : record.operation->real_ns;
    return Line(at, "alarm", AlarmSentence(record));
  }
  void WriteAlarm(const format::AlarmRecord& record) override {
    out_.Append(AlarmLine(record));
  }

 private:
  static std::string Line(uint64_t real_ns, std::string_view what,
                          std::string_view where) {
    return std::to_string(real_ns) + '\t' + std::string(what) + '\t' +
           TerminalText(where) + '\n';
  }

  OutputBuffer& out_;
};

}  // namespace

std::unique_ptr<Exporter> MakeTsvExporter(OutputBuffer& out,
                                          const ExportOptions& /*options*/) {
  return std::make_unique<TsvExporter>(out);
}

}  // namespace tracefs

#include "tracefs/export/xml.h"

#include <string>

#include "tracefs/base/printable.h"
#include "tracefs/base/version.h"
#include "tracefs/format/frame.h"
#include "tracefs/text/decimal.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

// XML has no way to write these: control characters, and two that are none.
bool FitsXml(std::string_view text) {
  while (!text.empty()) {
    const auto c = static_cast<unsigned char>(text.front());
    if (c >= 0x20 && c < 0x7f) {
      text.remove_prefix(1);
      continue;
    }
    const CodePoint point = FirstCodePoint(text);
    if (point.size == 0 || point.value == 0xfffe || point.value == 0xffff) {
      return false;
    }
    // A parser makes blanks of tabs and line ends, unless they are spelled out;
    // other control characters it refuses.
    if (point.value < 0x20 && c != '\t' && c != '\n' && c != '\r') return false;
    text.remove_prefix(point.size);
  }
  return true;
}

void AppendEscaped(std::string_view text, std::string* out) {
  while (!text.empty()) {
    const char c = text.front();
    size_t size = 1;
    switch (c) {
      case '&':
        *out += "&amp;";
        break;
      case '<':
        *out += "&lt;";
        break;
      case '>':
        *out += "&gt;";
        break;
      case '"':
        *out += "&quot;";
        break;
      default: {
        const CodePoint point = FirstCodePoint(text);
        size = point.size;
        // Also what a reader's screen would obey.
        if (point.value < 0x20 || IsHidden(point.value)) {
          *out += "&#" + std::to_string(point.value) + ";";
        } else {
          out->append(text, 0, size);
        }
      }
    }
    text.remove_prefix(size);
  }
}

void AppendAttribute(std::string_view name, std::string_view value,
                     std::string* out) {
  *out += ' ';
  *out += name;
  if (FitsXml(value)) {
    *out += "=\"";
    AppendEscaped(value, out);
  } else {
    *out += "_b64=\"";
    const size_t at = out->size();
    out->resize(at + Base64Size(value.size()));
    PutBase64(out->data() + at, value);
  }
  *out += '"';
}

class XmlExporter final : public Exporter {
 public:
  explicit XmlExporter(OutputBuffer& out)
      : out_(out), columns_(EveryColumn()) {}

  void Write(const format::Record& record) override {
    PutHead();
    const TableRow row(record);
    line_ = "  <operation";
    for (const Column* column : columns_) {
      const Cell cell = row.Get(*column, &scratch_);
      if (cell.present) PutCell(*column, cell);
    }
    line_ += "/>\n";
    out_.Append(line_);
  }

  void Summarize(const ExportSummary& summary) override {
    PutHead();
    for (const format::TraceContext* trace : summary.traces) {
      const format::TraceHeader& header = trace->description.header;
      line_ = "  <source";
      AppendAttribute("name", trace->name, &line_);
      line_ += " tracer=\"" + std::to_string(header.tracer_id) + "\"";
      line_ += " bad=\"";
      line_ += trace->stats.Bad() ? "true" : "false";
      line_ += "\">\n";
      for (const auto& [key, value] : header.properties) {
        line_ += "    <property";
        AppendAttribute("key", key, &line_);
        AppendAttribute("value", value, &line_);
        line_ += "/>\n";
      }
      for (const auto& [reason, count] : trace->stats.losses) {
        line_ += "    <loss";
        AppendAttribute("reason", reason, &line_);
        line_ += " count=\"" + std::to_string(count) + "\"/>\n";
      }
      line_ += "  </source>\n";
      out_.Append(line_);
    }
  }

  void Finish() override {
    PutHead();
    for (const auto& [kind, count] : LeftOutSoFar().Kinds()) {
      out_.Append("  <left_out what=\"" + std::string(kind) + "\" count=\"" +
                  std::to_string(count) + "\"/>\n");
    }
    out_.Append("</trace>\n");
  }

 private:
  void PutHead() {
    if (head_done_) return;
    head_done_ = true;
    out_.Append("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    out_.Append(
        "<trace xmlns=\"urn:tracefs:trace:1\" version=\"1\" "
        "converter=\"tracefs " +
        std::string(kVersion) + "\">\n");
  }

  void PutCell(const Column& column, const Cell& cell) {
    switch (column.type) {
      case ColumnType::kText:
      case ColumnType::kWord:
        AppendAttribute(column.name, cell.text, &line_);
        return;
      case ColumnType::kBytes: {
        line_ += ' ';
        line_ += column.name;
        line_ += "_b64=\"";
        const size_t at = line_.size();
        line_.resize(at + Base64Size(cell.text.size()));
        PutBase64(line_.data() + at, cell.text);
        line_ += '"';
        return;
      }
      default:
        break;
    }
    line_ += ' ';
    line_ += column.name;
    line_ += "=\"";
    std::array<char, kMaxDecimal + 1> digits;
    char* end = digits.data();
    if (column.type == ColumnType::kFlag) {
      line_ += "true";
    } else if (column.type == ColumnType::kSigned64 ||
               column.type == ColumnType::kTime) {
      end = PutSignedDecimal(end, static_cast<int64_t>(cell.number));
    } else {
      end = PutDecimal(end, cell.number);
    }
    line_.append(digits.data(), static_cast<size_t>(end - digits.data()));
    line_ += '"';
  }

  OutputBuffer& out_;
  const std::vector<const Column*> columns_;
  bool head_done_ = false;
  std::string line_;
  std::string scratch_;
};

}  // namespace

std::unique_ptr<Exporter> MakeXmlExporter(OutputBuffer& out,
                                          const ExportOptions&) {
  return std::make_unique<XmlExporter>(out);
}

}  // namespace tracefs

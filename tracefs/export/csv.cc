#include "tracefs/export/csv.h"

#include <cstring>
#include <string>

#include "tracefs/text/csv_text.h"
#include "tracefs/text/decimal.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/time_text.h"

namespace tracefs {
namespace {

constexpr size_t kMaxCsvEscape = 4;  // characters for a byte
// What any column with a short text needs, with what follows it.
constexpr size_t kCellRoom = TimeText::kRoom + 8;

class CsvExporter final : public Exporter {
 public:
  CsvExporter(OutputBuffer& out, const ExportOptions& options)
      : out_(out),
        columns_(options.columns.empty() ? UsualColumns() : options.columns),
        reader_(options.Choice("safe") == "no" ? CsvReader::kProgram
                                               : CsvReader::kSpreadsheet),
        time_(options.time, options.form),
        time_as_text_(options.form_given) {}

  void Write(const format::Record& record) override {
    PutHead();
    const TableRow row(record);
    const Event& event = record.event;
    const size_t room = columns_.size() * kCellRoom;
    char* at = out_.Reserve(room);
    for (const Column* column : columns_) {
      if (IsPlainNumber(*column)) {  // most are, and most of them are empty
        if (event.Has(column->field)) {
          at = PutDecimal(at, event.Get(column->field));
        } else if (!record.extra.empty()) {
          at = PutOpaque(at, room, record, column->field);
        }
        *at++ = ',';
        continue;
      }
      const Cell cell = row.Get(*column, &scratch_);
      if (!cell.text.empty()) {
        out_.Commit(at);
        at = out_.Reserve(room + 2 * kMaxCsvEscape * cell.text.size());
      }
      if (!cell.present && column->source == ColumnSource::kField &&
          !record.extra.empty()) {
        at = PutOpaque(at, room, record, column->field);
      } else if (cell.present) {
        at = column->type == ColumnType::kTime && time_as_text_
                 ? time_.Put(at, cell.number, record.time_resolution_ns)
                 : PutCell(at, column->type, cell);
      }
      *at++ = ',';
    }
    at[-1] = '\n';
    out_.Commit(at);
  }

  void Finish() override { PutHead(); }

 private:
  static bool IsPlainNumber(const Column& column) {
    return column.source == ColumnSource::kField &&
           (column.type == ColumnType::kUnsigned64 ||
            column.type == ColumnType::kUnsigned32);
  }

  // The bytes that stand for a number, if there are any, so that they cannot be
  // taken for one. `room` is there for what follows.
  char* PutOpaque(char* at, size_t room, const format::Record& record,
                  Field field) {
    const format::ExtraArgument* const opaque =
        format::OpaqueValue(record, field);
    if (opaque == nullptr) return at;
    out_.Commit(at);
    out_.Append("b64:");
    at = out_.Reserve(room + Base64Size(opaque->value.size()));
    return PutBase64(at, AsText(opaque->value));
  }

  void PutHead() {
    if (head_done_) return;
    head_done_ = true;
    for (const Column* column : columns_) {
      out_.Append(column->name);
      out_.Append(column == columns_.back() ? "\n" : ",");
    }
  }

  char* PutCell(char* at, ColumnType type, const Cell& cell) const {
    switch (type) {
      case ColumnType::kUnsigned32:
      case ColumnType::kUnsigned64:
      case ColumnType::kFlag:
        return PutDecimal(at, cell.number);
      case ColumnType::kSigned64:
      case ColumnType::kTime:
        return PutSignedDecimal(at, static_cast<int64_t>(cell.number));
      case ColumnType::kWord:
        std::memcpy(at, cell.text.data(), cell.text.size());
        return at + cell.text.size();
      case ColumnType::kBytes:
        // Its digits include the plus sign.
        if (reader_ == CsvReader::kSpreadsheet && !cell.text.empty() &&
            static_cast<unsigned char>(cell.text[0]) >> 2 == 62) {
          char* const end = PutBase64(at + 3, cell.text);
          PutHexEscape(at, '+');
          return end;
        }
        return PutBase64(at, cell.text);
      case ColumnType::kText:
        break;
    }
    return PutCsvText(at, cell.text, reader_);
  }

  OutputBuffer& out_;
  const std::vector<const Column*> columns_;
  const CsvReader reader_;
  TimeText time_;
  const bool time_as_text_;
  bool head_done_ = false;
  std::string scratch_;
};

}  // namespace

std::unique_ptr<Exporter> MakeCsvExporter(OutputBuffer& out,
                                          const ExportOptions& options) {
  return std::make_unique<CsvExporter>(out, options);
}

}  // namespace tracefs

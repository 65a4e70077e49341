#include "tracefs/export/parquet.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <list>
#include <optional>
#include <string>

#include "tracefs/base/clock.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"
#include "tracefs/base/version.h"
#include "tracefs/export/parquet_file.h"
#include "tracefs/export/summary.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

using format::Record;

// Files of partitions that are open at a time: as traces of many hosts are
// merged by time, each of them gets rows now and then. Each has a row group in
// memory, and all of them share kOpenBytes.
constexpr size_t kMaxOpen = 256;
constexpr size_t kOpenBytes = size_t{256} << 20;
constexpr size_t kLeastGroupBytes = size_t{1} << 20;
constexpr size_t kNoSlot = SIZE_MAX;

ParquetType ParquetTypeOf(ColumnType type) {
  switch (type) {
    case ColumnType::kUnsigned32:
      return ParquetType::kUnsigned32;
    case ColumnType::kUnsigned64:
      return ParquetType::kUnsigned64;
    case ColumnType::kSigned64:
    case ColumnType::kTime:
      return ParquetType::kSigned64;
    case ColumnType::kFlag:
      return ParquetType::kFlag;
    case ColumnType::kWord:
    case ColumnType::kText:
      return ParquetType::kText;
    case ColumnType::kBytes:
      break;
  }
  return ParquetType::kBytes;
}

// Which value goes into which column of a file.
class Layout {
 public:
  explicit Layout(const ExportOptions& options) {
    by_field_.fill(kNoSlot);
    for (const Column* column :
         options.columns.empty() ? EveryColumn() : options.columns) {
      Add(*column);
    }
  }

  const std::vector<std::pair<std::string, ParquetType>>& columns() const {
    return columns_;
  }
  size_t time_slot() const { return time_; }

  void Put(const TableRow& row, ParquetFile* file, std::string* scratch) const {
    const uint32_t number = file->row();
    const Event& event = row.event();
    // Only what is there: most columns of a row are empty.
    for (uint64_t bits = event.present & fields_; bits != 0; bits &= bits - 1) {
      const auto field = static_cast<size_t>(std::countr_zero(bits));
      file->column(by_field_[field]).Put(number, event.value[field]);
    }
    for (const Slot& slot : slots_) {
      const Cell cell = row.Get(*slot.column, scratch);
      if (!cell.present) continue;
      ParquetColumn& column = file->column(slot.number);
      switch (slot.column->type) {
        case ColumnType::kText:
          PutText(number, cell.text, slot, file);
          break;
        case ColumnType::kWord:
        case ColumnType::kBytes:
          column.PutText(number, cell.text);
          break;
        case ColumnType::kTime:
          column.Put(number, cell.number);
          file->column(slot.number + 1).Put(number, cell.number);
          break;
        default:
          column.Put(number, cell.number);
      }
    }
  }

 private:
  struct Slot {
    const Column* column;
    size_t number;
    size_t raw;  // where the bytes go, if the text has escapes
  };

  void Add(const Column& column) {
    const size_t number = columns_.size();
    columns_.emplace_back(column.name, ParquetTypeOf(column.type));
    const bool plain =
        column.source == ColumnSource::kField && IsNumeric(column.field) &&
        column.type != ColumnType::kWord && column.type != ColumnType::kFlag;
    if (plain) {
      by_field_[Index(column.field)] = number;
      fields_ |= Bit(column.field);
      return;
    }
    const bool path = column.source == ColumnSource::kPath ||
                      column.source == ColumnSource::kPath2;
    slots_.push_back({&column, number, path ? number + 1 : kNoSlot});
    if (path) {
      columns_.emplace_back(std::string(column.name) + "_raw",
                            ParquetType::kBytes);
    } else if (column.type == ColumnType::kTime) {
      time_ = number;
      columns_.emplace_back("timestamp", ParquetType::kTimestamp);
    }
  }

  static void PutText(uint32_t row, std::string_view text, const Slot& slot,
                      ParquetFile* file) {
    if (!NeedsEscapes(text)) {
      file->column(slot.number).PutText(row, text);
      return;
    }
    file->column(slot.number).PutText(row, EscapedText(text));
    if (slot.raw != kNoSlot) file->column(slot.raw).PutText(row, text);
  }

  std::vector<std::pair<std::string, ParquetType>> columns_;
  std::array<size_t, kNumericFieldCount> by_field_;
  uint64_t fields_ = 0;
  std::vector<Slot> slots_;
  size_t time_ = kNoSlot;
};

ParquetOptions OptionsOf(const ExportOptions& options) {
  ParquetOptions made;
  const auto number = [&](std::string_view name, uint64_t otherwise) {
    return ParseUnsigned(options.Choice(name)).value_or(otherwise);
  };
  made.group_rows = static_cast<uint32_t>(
      std::min<uint64_t>(number("rows", made.group_rows), 10'000'000));
  made.level = static_cast<int>(std::min<uint64_t>(
      number("level", 1), static_cast<uint64_t>(ZSTD_maxCLevel())));
  return made;
}

using Properties = std::vector<std::pair<std::string, std::string>>;

Properties PropertiesOf(const ExportSummary& summary, const LeftOut& left_out) {
  Properties properties = {{"tracefs.version", std::string(kVersion)},
                           {"tracefs.traces", TracesAsJson(summary)}};
  if (!summary.filter.empty()) {
    properties.emplace_back("tracefs.filter", EscapedText(summary.filter));
  }
  std::string members;
  JsonWriter json = JsonWriter::Within(&members);
  for (const auto& [kind, count] : left_out.Kinds()) json.Put(kind, count);
  if (!members.empty()) {
    properties.emplace_back("tracefs.left_out", "{" + members + "}");
  }
  return properties;
}

ParquetOptions Beside(ParquetOptions options) {
  options.packs_beside = true;
  return options;
}

class ParquetExporter final : public Exporter {
 public:
  ParquetExporter(OutputBuffer& out, const ExportOptions& options)
      : layout_(options),
        file_(out, layout_.columns(), Beside(OptionsOf(options))) {
    if (layout_.time_slot() != kNoSlot) file_.SetSorted(layout_.time_slot());
  }

  void Write(const Record& record) override {
    if (record.time_resolution_ns == 0 || record.real_ns < last_ns_) {
      file_.SetUnsorted();
    }
    last_ns_ = record.real_ns;
    layout_.Put(TableRow(record), &file_, &scratch_);
    file_.EndRow();
  }
  void Summarize(const ExportSummary& summary) override {
    properties_ = PropertiesOf(summary, LeftOutSoFar());
  }
  void Finish() override { file_.Finish(properties_); }
  Status status() const override { return file_.status(); }

 private:
  const Layout layout_;
  ParquetFile file_;
  uint64_t last_ns_ = 0;
  std::string scratch_;
  Properties properties_;
};

// A file for each host and day.
class PartitionedExporter final : public Exporter {
 public:
  explicit PartitionedExporter(const ExportOptions& options)
      : layout_(options), options_(OptionsOf(options)), folder_(options.path) {}

  void Write(const Record& record) override {
    if (!status_.ok()) return;
    Part* const part = PartOf(record);
    if (part == nullptr) return;
    layout_.Put(TableRow(record), &*part->file, &scratch_);
    part->file->EndRow();
    if (!part->out->status().ok()) status_ = part->out->status();
  }
  void Summarize(const ExportSummary& summary) override {
    properties_ = PropertiesOf(summary, LeftOutSoFar());
  }
  void Finish() override {
    while (!parts_.empty()) Close();
  }
  Status status() const override { return status_; }

 private:
  struct Part {
    std::string host;
    uint64_t day = 0;
    UniqueFd fd;
    std::optional<FdOutput> out;
    std::optional<ParquetFile> file;
  };

  // Names of folders: what could lead elsewhere, or be taken for something
  // else, is spelled out.
  static std::string FolderName(std::string_view text) {
    std::string name;
    for (const char c : text) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                         (c >= 'A' && c <= 'Z') || c == '-' || c == '_' ||
                         (c == '.' && !name.empty());
      if (plain) {
        name += c;
      } else {
        constexpr char kDigits[] = "0123456789ABCDEF";
        const auto byte = static_cast<unsigned char>(c);
        ((name += '%') += kDigits[byte >> 4]) += kDigits[byte & 15];
      }
    }
    return name.empty() ? "unknown" : name.substr(0, 120);
  }

  // The one used last is at the front.
  Part* PartOf(const Record& record) {
    const std::string_view host =
        record.trace->description.header.Get("host.name");
    constexpr uint64_t kDayNs = 86'400 * kNsPerSecond;
    const uint64_t day = record.real_ns / kDayNs;
    for (auto part = parts_.begin(); part != parts_.end(); ++part) {
      if (part->day == day && part->host == host) {
        parts_.splice(parts_.begin(), parts_, part);
        return &parts_.front();
      }
    }
    if (parts_.size() >= kMaxOpen) Close();
    Part& made = parts_.emplace_front();
    made.host = host;
    made.day = day;
    const auto seconds = static_cast<time_t>(day * 86'400);
    struct tm tm = {};
    ::gmtime_r(&seconds, &tm);
    std::array<char, 32> date;
    std::strftime(date.data(), date.size(), "date=%Y-%m-%d", &tm);
    std::string path = folder_;
    for (const std::string& name :
         {"host=" + FolderName(host), std::string(date.data())}) {
      path += '/' + name;
      if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) {
        return Fail("cannot make " + path);
      }
    }
    path += "/part-" + std::to_string(number_++) + ".parquet";
    made.fd.Reset(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!made.fd) return Fail("cannot make " + path);
    made.out.emplace(made.fd.get());
    made.file.emplace(*made.out, layout_.columns(), options_);
    ShareMemory();
    return &made;
  }

  void ShareMemory() {
    const size_t share =
        std::min(options_.group_bytes,
                 std::max(kOpenBytes / std::max<size_t>(parts_.size(), 1),
                          kLeastGroupBytes));
    for (Part& part : parts_) part.file->SetGroupBytes(share);
  }

  Part* Fail(const std::string& what) {
    status_ = Status::System(errno, what);
    parts_.pop_front();
    return nullptr;
  }

  void Close() {
    Part& part = parts_.back();
    part.file->Finish(properties_);
    Status s = part.file->status();
    if (s.ok()) s = part.out->Flush();
    if (!s.ok() && status_.ok()) status_ = s;
    parts_.pop_back();
  }

  const Layout layout_;
  const ParquetOptions options_;
  const std::string folder_;
  std::list<Part> parts_;
  uint64_t number_ = 0;
  std::string scratch_;
  Properties properties_;
  Status status_;
};

}  // namespace

std::unique_ptr<Exporter> MakeParquetExporter(OutputBuffer& out,
                                              const ExportOptions& options) {
  if (options.Choice("partition") == "yes") {
    return std::make_unique<PartitionedExporter>(options);
  }
  return std::make_unique<ParquetExporter>(out, options);
}

}  // namespace tracefs

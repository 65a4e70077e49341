#include "tracefs/export/parquet.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <string>

#include "tracefs/base/clock.h"
#include "tracefs/base/date_text.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"
#include "tracefs/base/version.h"
#include "tracefs/export/column_split.h"
#include "tracefs/export/parquet_file.h"
#include "tracefs/export/summary.h"
#include "tracefs/format/path_memo.h"
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
    for (const Column* column :
         options.columns.empty() ? EveryColumn() : options.columns) {
      Add(*column);
    }
  }

  const std::vector<std::pair<std::string, ParquetType>>& columns() const {
    return columns_;
  }
  size_t time_slot() const { return time_; }
  // Where paths and the last parts of them go; kNoSlot: nowhere.
  size_t path_slot() const { return path_; }
  size_t name_slot() const { return name_; }

  const ColumnSplit& others() const { return split_; }

  // Its number, if the text is as it is in the column.
  uint32_t PutText(uint32_t row, std::string_view text, size_t place,
                   ParquetFile* file) const {
    if (!NeedsEscapes(text)) return file->column(place).PutText(row, text);
    file->column(place).PutText(row, EscapedText(text));
    if (place == path_ || place == path2_) {
      file->column(place + 1).PutText(row, text);  // the bytes
    }
    return ParquetColumn::kNoNumber;
  }

 private:
  void Add(const Column& column) {
    const size_t number = columns_.size();
    columns_.emplace_back(column.name, ParquetTypeOf(column.type));
    switch (column.source) {
      case ColumnSource::kPath:
      case ColumnSource::kPath2:
        (column.source == ColumnSource::kPath ? path_ : path2_) = number;
        columns_.emplace_back(std::string(column.name) + "_raw",
                              ParquetType::kBytes);
        break;
      case ColumnSource::kName:
        name_ = number;
        break;
      case ColumnSource::kTime:
        time_ = number;
        columns_.emplace_back("timestamp", ParquetType::kTimestamp);
        break;
      default:
        break;
    }
    if (number != path_ && number != name_) split_.Add(column, number);
  }

  std::vector<std::pair<std::string, ParquetType>> columns_;
  ColumnSplit split_;
  size_t time_ = kNoSlot;
  size_t path_ = kNoSlot;
  size_t path2_ = kNoSlot;
  size_t name_ = kNoSlot;
};

// Puts operations into a file.
class Rows {
 public:
  Rows(const Layout& layout, OutputBuffer& out, const ParquetOptions& options)
      : layout_(layout), file_(out, layout.columns(), options) {}

  ParquetFile& file() { return file_; }
  const Status& status() const { return file_.status(); }
  void Put(const Record& record) {
    const TableRow row(record);
    if (group_ != file_.groups()) {
      group_ = file_.groups();
      known_.Clear();
      texts_.assign(layout_.columns().size(), {});
      words_.assign(layout_.columns().size(), {});
    }
    PutOthers(row);
    PathNumbers none;
    PathNumbers* known = known_.Of(record);
    if (known == nullptr) known = &none;
    PutKnown(layout_.path_slot(), &known->path, [&] { return row.path(); });
    // A name that is not the last part of the path.
    const bool own = record.event.name.empty() ? record.HasText(Field::kName)
                                               : record.event.parent == 0;
    PutKnown(layout_.name_slot(), own ? &none.name : &known->name,
             [&] { return row.name(); });
    file_.EndRow();
  }

 private:
  static constexpr size_t kWords = 256;  // that are remembered, by key
  struct LastText {
    std::string text;
    uint32_t number = ParquetColumn::kNoNumber;
  };
  struct PathNumbers {
    uint32_t path = ParquetColumn::kNoNumber;
    uint32_t name = ParquetColumn::kNoNumber;
  };

  // All but paths and names.
  void PutOthers(const TableRow& row) {
    const uint32_t number = file_.row();
    layout_.others().ForEach(
        row.record(),
        [&](size_t place, uint64_t value) {
          file_.column(place).Put(number, value);
        },
        [&](const Column& column, size_t place, uint64_t key) {
          ParquetColumn& to = file_.column(place);
          uint32_t* known = nullptr;
          if (key < kWords) {
            std::vector<uint32_t>& words = words_[place];
            if (words.empty()) words.assign(kWords, ParquetColumn::kNoNumber);
            known = &words[key];
            if (*known != ParquetColumn::kNoNumber && to.has_dictionary()) {
              return to.PutNumber(number, *known);
            }
          }
          const Cell cell = row.Get(column, &scratch_);
          if (!cell.present) return;
          switch (column.type) {
            case ColumnType::kText:
              return PutText(cell.text, place);
            case ColumnType::kWord:
            case ColumnType::kBytes: {
              const uint32_t word = to.PutText(number, cell.text);
              if (known != nullptr) *known = word;
              return;
            }
            case ColumnType::kTime:
              file_.column(place + 1).Put(number, cell.number);
              [[fallthrough]];
            default:
              to.Put(number, cell.number);
          }
        });
  }

  // Most often the same as before.
  void PutText(std::string_view text, size_t place) {
    LastText& last = texts_[place];
    if (last.number != ParquetColumn::kNoNumber && last.text == text &&
        file_.column(place).has_dictionary()) {
      return file_.column(place).PutNumber(file_.row(), last.number);
    }
    last.text = text;
    last.number = layout_.PutText(file_.row(), text, place, &file_);
  }

  template <typename Text>
  void PutKnown(size_t slot, uint32_t* known, Text text) {
    if (slot == kNoSlot) return;
    ParquetColumn& column = file_.column(slot);
    if (*known != ParquetColumn::kNoNumber && column.has_dictionary()) {
      column.PutNumber(file_.row(), *known);
      return;
    }
    const std::string_view made = text();
    if (made.empty()) return;
    *known = layout_.PutText(file_.row(), made, slot, &file_);
  }

  const Layout& layout_;
  ParquetFile file_;
  // What is known of the dictionaries of that group.
  size_t group_ = SIZE_MAX;
  std::vector<std::vector<uint32_t>> words_;  // by column, by key
  std::vector<LastText> texts_;               // by column
  format::PathMemo<PathNumbers> known_;
  std::string scratch_;
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
      : layout_(options), rows_(layout_, out, Beside(OptionsOf(options))) {
    if (layout_.time_slot() != kNoSlot) {
      rows_.file().SetSorted(layout_.time_slot());
    }
  }

  void Write(const Record& record) override {
    if (record.time_resolution_ns == 0 || record.real_ns < last_ns_) {
      rows_.file().SetUnsorted();
    }
    last_ns_ = record.real_ns;
    rows_.Put(record);
  }
  void Summarize(const ExportSummary& summary) override {
    properties_ = PropertiesOf(summary, LeftOutSoFar());
  }
  void Finish() override { rows_.file().Finish(properties_); }
  Status status() const override { return rows_.status(); }

 private:
  const Layout layout_;
  Rows rows_;
  uint64_t last_ns_ = 0;
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
    part->rows->Put(record);
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
    std::optional<Rows> rows;
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
    std::string path = folder_;
    for (const std::string& name :
         {"host=" + FolderName(host), UtcText(seconds, "date=%Y-%m-%d")}) {
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
    made.rows.emplace(layout_, *made.out, options_);
    ShareMemory();
    return &made;
  }

  void ShareMemory() {
    const size_t share =
        std::min(options_.group_bytes,
                 std::max(kOpenBytes / std::max<size_t>(parts_.size(), 1),
                          kLeastGroupBytes));
    for (Part& part : parts_) part.rows->file().SetGroupBytes(share);
  }

  Part* Fail(const std::string& what) {
    status_ = Status::System(errno, what);
    parts_.pop_front();
    return nullptr;
  }

  void Close() {
    Part& part = parts_.back();
    part.rows->file().Finish(properties_);
    Status s = part.rows->status();
    if (s.ok()) s = part.out->Flush();
    if (!s.ok() && status_.ok()) status_ = s;
    parts_.pop_back();
  }

  const Layout layout_;
  const ParquetOptions options_;
  const std::string folder_;
  std::list<Part> parts_;
  uint64_t number_ = 0;
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

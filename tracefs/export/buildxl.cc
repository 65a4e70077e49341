#include "tracefs/export/buildxl.h"

#include <array>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/printable.h"
#include "tracefs/base/units.h"
#include "tracefs/build/path_table.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/export/buildxl_rows.h"
#include "tracefs/export/spool.h"

namespace tracefs {
namespace {

using build::ExecutionId;
using build::FileStep;
using build::PathTable;
using build::Process;
using build::ProcessId;
using buildxl::Operation;
using buildxl::Requested;

// 0x10000001 is the first number of a path in files of BuildXL's.
constexpr uint64_t kFirstPath = 0x10000000;
// 100 ns each, from the first of January of the year 1 to that of 1970.
constexpr uint64_t kTicksTo1970 = 621355968000000000;
constexpr uint32_t kNoExitCode = UINT32_MAX;

std::string Number(uint64_t value) { return std::to_string(value); }

class BuildXlExporter final : public Exporter, private build::TrackerListener {
 public:
  BuildXlExporter(OutputBuffer& out, const BuildXlOptions& options)
      : out_(out),
        options_(options),
        tracker_(*this),
        processes_(options.memory_bytes),
        paths_text_(options.memory_bytes),
        operations_(options.memory_bytes),
        extras_(options.memory_bytes),
        attributes_(options.memory_bytes) {}

  void Write(const format::Record& record) override {
    if (!status_.ok()) return;
    const FileStep* const step = steps_.Of(record);
    if (step == nullptr) return;
    real_offset_ns_ = record.real_ns - step->time_ns;
    tracker_.Take(*step);
  }
  void WriteProcess(const ProcessRecord& record) override {
    if (!status_.ok()) return;
    real_offset_ns_ = record.real_ns - record.time_ns;
    tracker_.Take(record);
  }
  void Summarize(const ExportSummary& summary) override {
    for (const format::TraceContext* trace : summary.traces) {
      const std::string_view visibility =
          trace->description.header.Get("visibility");
      marker_ += marker_.empty() ? "tracefs:" : ";";
      marker_ += visibility == "exact" ? " complete" : " cache-filtered";
      marker_ += " (visibility " +
                 std::string(visibility.empty() ? "unknown" : visibility) + ")";
      uint64_t lost = 0;
      for (const auto& [reason, count] : trace->stats.losses) lost += count;
      marker_ += ", lost " + Number(lost);
    }
    if (!summary.filter.empty()) marker_ += ", filtered: " + summary.filter;
  }

  void Finish() override {
    tracker_.Finish();
    if (!status_.ok()) return;
    AddProcess(0, "tracefs", 0, 0, 0, 0, marker_.empty() ? "tracefs" : marker_);
    std::string head = Number(options_.version) + "\n";
    AppendNames(operation_names_, &head);
    AppendNames(access_names_, &head);
    head += Number(process_count_) + "\n";
    out_.Append(head);
    Copy(&processes_);
    out_.Append(Number(path_count_) + "\n");
    Copy(&paths_text_);
    out_.Append("0\n" + Number(rows_) + "\n");
    Copy(&operations_);
    if (options_.version >= 2) {
      out_.Append(Number(rows_) + "\n");
      Copy(&extras_);
    }
    if (options_.version >= 3) {
      out_.Append(Number(rows_) + "\n");
      Copy(&attributes_);
    }
  }
  uint64_t left_out() const override { return left_out_; }
  Status status() const override { return status_; }

 private:
  using Names = std::vector<std::pair<uint8_t, std::string_view>>;

  static void AppendNames(const Names& names, std::string* out) {
    *out += Number(names.size()) + "\n";
    for (const auto& [number, name] : names) {
      *out += Number(number) + "=" + std::string(name) + "\n";
    }
  }
  static void See(Names* names, uint8_t number, std::string_view name) {
    for (const auto& [seen, text] : *names) {
      if (seen == number) return;
    }
    names->emplace_back(number, name);
  }

  void Copy(Spool* spool) {
    if (!status_.ok()) return;
    status_ = spool->CopyTo(&out_);
  }

  // `separators`: what would end a field.
  std::string Safe(std::string_view text, std::string_view separators,
                   std::string_view what) {
    std::string safe;
    while (!text.empty()) {
      const CodePoint point = FirstCodePoint(text);
      const size_t size = std::max<size_t>(point.size, 1);
      const auto byte = static_cast<unsigned char>(text.front());
      const bool breaks = point.size == 0 || byte < 0x20 || byte == 0x7f ||
                          separators.find(text.front()) != separators.npos;
      if (breaks || byte == '%') {
        constexpr char kDigits[] = "0123456789ABCDEF";
        safe += '%';
        safe += kDigits[byte >> 4];
        safe += kDigits[byte & 15];
      } else {
        safe += text.substr(0, size);
      }
      if (breaks && options_.fail_on_escape && status_.ok()) {
        status_ = Status::Invalid(
            "BuildXL's format cannot hold " + std::string(what) + " " +
            Printable(text.substr(0, 80)) +
            ": --bxl-escape=percent writes its bytes as %XX");
      }
      text.remove_prefix(size);
    }
    return safe;
  }

  uint64_t Ticks(uint64_t time_ns) const {
    return (time_ns + real_offset_ns_) / 100 + kTicksTo1970;
  }

  uint64_t PathNumber(std::string_view path) {
    const PathTable::Id id = paths_.Intern(path);
    if (id >= path_numbers_.size()) path_numbers_.resize(paths_.size(), 0);
    if (path_numbers_[id] == 0) {
      path_numbers_[id] = ++path_count_;
      paths_text_.Append(Number(kFirstPath + path_count_) + "=" +
                         Safe(paths_.Text(id), "=,", "the path") + "\n");
    }
    return kFirstPath + path_numbers_[id];
  }

  struct RowFacts {
    uint32_t pid = 0;
    uint32_t error = 0;
    bool augmented = false;
    uint64_t correlation = 0;
    uint32_t open_flags = buildxl::kNotKnown;
    uint32_t attributes = buildxl::kNotKnown;
  };
  // Returns the row's access id.
  uint64_t AddRow(buildxl::Row row, std::string_view path,
                  const RowFacts& facts) {
    const auto operation = static_cast<uint8_t>(row.operation);
    const auto access = static_cast<uint8_t>(row.access);
    See(&operation_names_, operation, OperationName(row.operation));
    See(&access_names_, access, RequestedName(row.access));
    const std::string id = Number(rows_++);
    operations_.Append(id + "," + Number(facts.pid) + "," +
                       Number(PathNumber(path)) + ",," + Number(operation) +
                       "," + Number(access) + "," + Number(facts.error) +
                       (facts.augmented ? ",1,\n" : ",0,\n"));
    const uint64_t access_id = rows_;
    if (options_.version >= 2) {
      extras_.Append(id + "," + Number(access_id) + "," +
                     Number(facts.correlation) + "\n");
    }
    if (options_.version >= 3) {
      attributes_.Append(id + "," + Number(facts.open_flags) + "," +
                         Number(facts.attributes) + "\n");
    }
    return access_id;
  }

  // What an open file is called: copies name their files by handles only.
  std::string_view PathOfHandle(uint64_t fh) const {
    const auto found = open_.find(fh);
    return found == open_.end() ? std::string_view() : found->second;
  }

  void AddRows(uint32_t pid, const FileStep& step) {
    const buildxl::Rows rows = buildxl::RowsOf(step);
    if (rows.count == 0 || step.path.empty()) {
      ++left_out_;
      return;
    }
    RowFacts facts = {.pid = pid,
                      .error = step.error,
                      .augmented = step.inferred,
                      .correlation = 0,
                      .open_flags = buildxl::OpenFlagsOf(step),
                      .attributes = buildxl::AttributesOf(step)};
    const uint64_t first = AddRow(rows.row[0], step.path, facts);
    if (rows.count == 2) {
      const std::string_view second = step.op == Op::copy_file_range_
                                          ? PathOfHandle(step.fh_out)
                                          : step.path2;
      facts.correlation = first;
      if (!second.empty()) AddRow(rows.row[1], second, facts);
    }
    if (step.fh == 0 || step.error != 0) return;
    if (step.op == Op::open_ || step.op == Op::create_) {
      open_[step.fh] = step.path;
    } else if (step.op == Op::release_) {
      open_.erase(step.fh);
    }
  }

  // --- What the tracker tells.

  bool IsWanted(ProcessId id) const {
    return options_.root_pid == 0 || (id < wanted_.size() && wanted_[id]);
  }

  void ProcessBegan(const Process& process) override {
    if (options_.root_pid == 0) return;
    wanted_.resize(process.id + size_t{1}, false);
    wanted_[process.id] =
        process.key.pid == options_.root_pid ||
        (process.parent != build::kNobody && wanted_[process.parent]);
  }

  void Did(const Process& process, const FileStep& step) override {
    if (IsWanted(process.id)) AddRows(process.number, step);
  }

  void DidWithout(ProcessId id, uint32_t number,
                  const FileStep& step) override {
    if (id == build::kNobody) {
      if (options_.root_pid == 0) AddRows(0, step);
    } else if (IsWanted(id)) {
      AddRows(number, step);
    }
  }

  void ExecutionBegan(const Process& process) override {
    const std::string_view binary = process.now.image->Binary();
    if (binary.empty() || !process.recorded || !IsWanted(process.id)) return;
    AddRow(
        {process.now.index == 0 ? Operation::kProcess : Operation::kProcessExec,
         Requested::kNone},
        binary, {.pid = process.number});
  }

  void ProcessEnded(const Process& process) override {
    if (!IsWanted(process.id)) return;
    const build::Image& image = *process.now.image;
    std::string_view binary = image.Binary();
    if (process.ended && !binary.empty()) {
      AddRow({Operation::kProcessExit, Requested::kNone}, binary,
             {.pid = process.number});
    }
    if (binary.empty()) binary = process.comm;
    std::string line = image.CommandLine();
    if (line.empty()) line = binary;
    AddProcess(
        process.number, binary,
        process.parent_number == 0 ? process.parent_pid : process.parent_number,
        Ticks(process.begin_ns), Ticks(process.end_ns),
        process.ShellStatus().value_or(kNoExitCode), line);
  }

  void AddProcess(uint32_t pid, std::string_view exe, uint32_t parent,
                  uint64_t begin, uint64_t end, uint32_t code,
                  std::string_view line) {
    ++process_count_;
    processes_.Append(Number(pid) + ",\"" + Safe(exe, ",\"", "the program") +
                      "\"," + Number(parent) + "," + Number(begin) + "," +
                      Number(end) + "," + Number(code) + "\n" +
                      Safe(line, {}, "the command line") + "\n");
  }

  OutputBuffer& out_;
  const BuildXlOptions options_;
  build::ProcessTracker tracker_;
  build::RecordSteps steps_;
  PathTable paths_;
  std::vector<uint32_t> path_numbers_;              // by path; 0: has none yet
  std::unordered_map<uint64_t, std::string> open_;  // by file handle
  std::vector<bool> wanted_;                        // by process
  Names operation_names_;                           // as they were met
  Names access_names_;
  Spool processes_;
  Spool paths_text_;
  Spool operations_;
  Spool extras_;
  Spool attributes_;
  uint64_t process_count_ = 0;
  uint32_t path_count_ = 0;
  uint64_t rows_ = 0;
  uint64_t left_out_ = 0;
  uint64_t real_offset_ns_ = 0;
  std::string marker_;
  Status status_;
};

}  // namespace

std::unique_ptr<Exporter> MakeBuildXl(OutputBuffer& out,
                                      const BuildXlOptions& options) {
  return std::make_unique<BuildXlExporter>(out, options);
}

std::unique_ptr<Exporter> MakeBuildXlExporter(OutputBuffer& out,
                                              const ExportOptions& options) {
  BuildXlOptions chosen;
  if (const auto version = options.Choice("version"); !version.empty()) {
    chosen.version = version.front() - '0';
  }
  chosen.fail_on_escape = options.Choice("escape") == "fail";
  if (const auto pid = ParseUnsigned(options.Choice("root-pid"))) {
    chosen.root_pid = static_cast<uint32_t>(*pid);
  }
  return MakeBuildXl(out, chosen);
}

}  // namespace tracefs

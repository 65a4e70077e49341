#include "tracefs/export/buildxl.h"

#include <errno.h>
#include <fcntl.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"
#include "tracefs/build/path_table.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/export/buildxl_file.h"
#include "tracefs/export/buildxl_rows.h"

namespace tracefs {
namespace {

using build::FileStep;
using build::PathTable;
using build::Process;
using build::ProcessId;
using buildxl::File;
using buildxl::Operation;
using buildxl::Requested;

// 100 ns each, from the first of January of the year 1 to that of 1970.
constexpr uint64_t kTicksTo1970 = 621355968000000000;
constexpr uint32_t kNoExitCode = UINT32_MAX;
// Of each block of a file where there are many.
constexpr size_t kMemoryOfMany = size_t{4} << 10;

class BuildXlExporter final : public Exporter, private build::TrackerListener {
 public:
  BuildXlExporter(OutputBuffer& out, const BuildXlOptions& options)
      : out_(out),
        options_(options),
        tracker_(*this),
        spool_(options.folder.empty() ? nullptr
                                      : std::make_shared<SpoolFile>()) {}

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
      marker_ += ", lost " + std::to_string(lost);
    }
    if (!summary.filter.empty()) marker_ += ", filtered: " + summary.filter;
  }

  void Finish() override {
    tracker_.Finish();
    if (!status_.ok()) return;
    if (marker_.empty()) marker_ = "tracefs";
    if (options_.folder.empty()) {
      status_ = FileOf(build::kNobody).WriteTo(&out_, marker_);
      return;
    }
    for (const auto& [root, file] : files_) {
      // Of one who was there all the time and did nothing.
      if (file->rows() != 0 && status_.ok()) status_ = WriteFile(root, *file);
    }
  }
  uint64_t left_out() const override { return left_out_; }
  Status status() const override { return status_; }

 private:
  uint64_t Ticks(uint64_t time_ns) const {
    return (time_ns + real_offset_ns_) / 100 + kTicksTo1970;
  }

  // --- Files.

  void Keep(const Status& status) {
    if (status_.ok()) status_ = status;
  }

  // The first process of its tree, by which its file is known: kNobody is that
  // of all without --set split=yes, and of what nobody is known to have done.
  ProcessId RootOf(ProcessId id) const {
    return options_.folder.empty() || id == build::kNobody ? build::kNobody
                                                           : trees_[id].root;
  }
  File& FileOf(ProcessId process) {
    std::unique_ptr<File>& file = files_[RootOf(process)];
    if (file == nullptr) {
      file = std::make_unique<File>(options_, paths_, spool_);
    }
    return *file;
  }
  Status WriteFile(ProcessId root, File& file) const {
    const uint32_t number = root == build::kNobody ? 0 : trees_[root].number;
    const std::string path =
        options_.folder + "/" + std::to_string(number) + ".txt";
    const UniqueFd fd(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) return Status::System(errno, "cannot make " + path);
    FdOutput out(fd.get());
    if (Status s = file.WriteTo(&out, marker_); !s.ok()) return s;
    return out.Flush();
  }

  // What an open file is called: copies name their files by handles only.
  std::string_view PathOfHandle(uint64_t fh) const {
    const auto found = open_.find(fh);
    return found == open_.end() ? std::string_view() : found->second;
  }

  void AddRows(File& file, uint32_t pid, const FileStep& step) {
    const buildxl::Rows rows = buildxl::RowsOf(step);
    if (rows.count == 0 || step.path.empty()) {
      ++left_out_;
      return;
    }
    File::RowFacts facts = {.pid = pid,
                            .error = step.error,
                            .augmented = step.inferred,
                            .correlation = 0,
                            .open_flags = buildxl::OpenFlagsOf(step),
                            .attributes = buildxl::AttributesOf(step)};
    const uint64_t first = file.AddRow(rows.row[0], step.path, facts);
    if (rows.count == 2) {
      const std::string_view second = step.op == Op::copy_file_range_
                                          ? PathOfHandle(step.fh_out)
                                          : step.path2;
      facts.correlation = first;
      if (!second.empty()) file.AddRow(rows.row[1], second, facts);
    }
    Keep(file.status());
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
    NoteTree(process);
    if (options_.root_pid == 0) return;
    wanted_.resize(process.id + size_t{1}, false);
    wanted_[process.id] =
        process.key.pid == options_.root_pid ||
        (process.parent != build::kNobody && wanted_[process.parent]);
  }

  // Who was there already is a tree of his own, and so is everybody he starts:
  // a shell in a terminal is not part of the builds that it runs.
  void NoteTree(const Process& process) {
    if (options_.folder.empty()) return;
    trees_.resize(process.id + size_t{1});
    Tree& tree = trees_[process.id];
    tree = {process.id, process.number, process.forked};
    if (process.parent == build::kNobody) return;
    const Tree& above = trees_[process.parent];
    const bool below =
        tracker_.any_records() ? process.forked && above.forked : true;
    if (below) tree.root = above.root;
  }

  void Did(const Process& process, const FileStep& step) override {
    if (IsWanted(process.id)) AddRows(FileOf(process.id), process.number, step);
  }

  void DidWithout(ProcessId id, uint32_t number,
                  const FileStep& step) override {
    if (id == build::kNobody) {
      if (options_.root_pid == 0) AddRows(FileOf(id), 0, step);
    } else if (IsWanted(id)) {
      AddRows(FileOf(id), number, step);
    }
  }

  void ExecutionBegan(const Process& process) override {
    const std::string_view binary = process.now.image->Binary();
    if (binary.empty() || !process.recorded || !IsWanted(process.id)) return;
    FileOf(process.id)
        .AddRow({process.now.index == 0 ? Operation::kProcess
                                        : Operation::kProcessExec,
                 Requested::kNone},
                binary, {.pid = process.number});
  }

  void ProcessEnded(const Process& process) override {
    if (!IsWanted(process.id)) return;
    File& file = FileOf(process.id);
    const build::Image& image = *process.now.image;
    std::string_view binary = image.Binary();
    if (process.ended && !binary.empty()) {
      file.AddRow({Operation::kProcessExit, Requested::kNone}, binary,
                  {.pid = process.number});
    }
    if (binary.empty()) binary = process.comm;
    std::string line = image.CommandLine();
    if (line.empty()) line = binary;
    file.AddProcess({.pid = process.number,
                     .parent = process.parent_number == 0
                                   ? process.parent_pid
                                   : process.parent_number,
                     .exe = binary,
                     .line = line,
                     .begin_ticks = Ticks(process.begin_ns),
                     .end_ticks = Ticks(process.end_ns),
                     .code = process.ShellStatus().value_or(kNoExitCode)});
    Keep(file.status());
  }

  struct Tree {
    ProcessId root = build::kNobody;
    uint32_t number = 0;
    bool forked = false;  // its beginning was seen
  };

  OutputBuffer& out_;
  const BuildXlOptions options_;
  build::ProcessTracker tracker_;
  build::RecordSteps steps_;
  PathTable paths_;
  const std::shared_ptr<SpoolFile> spool_;
  std::map<ProcessId, std::unique_ptr<File>> files_;  // by root
  std::vector<Tree> trees_;                           // by process
  std::unordered_map<uint64_t, std::string> open_;    // by file handle
  std::vector<bool> wanted_;                          // by process
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
  if (options.Choice("split") == "yes") {
    chosen.folder = options.path;
    chosen.memory_bytes = kMemoryOfMany;
  }
  return MakeBuildXl(out, chosen);
}

}  // namespace tracefs

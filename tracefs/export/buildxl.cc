#include "tracefs/export/buildxl.h"

#include <errno.h>
#include <fcntl.h>

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/base/units.h"
#include "tracefs/build/path_table.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/export/buildxl_file.h"
#include "tracefs/export/buildxl_names.h"
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
// A trace that renames large directories over and over makes no more rows than
// so many for each rename, and the million that the exporter begins with.
constexpr size_t kNamesOfARename = 64;
// For each block of a file that has many.
constexpr size_t kMemoryOfMany = size_t{4} << 10;

class BuildXlExporter final : public Exporter, private build::TrackerListener {
 public:
  BuildXlExporter(OutputBuffer& out, const BuildXlOptions& options)
      : out_(out),
        options_(options),
        tracker_(*this),
        names_(paths_),
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
    if (moved_directories_) {
      marker_ += ", renamed directories: the files below that the trace names";
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
      // One that was there all the time and did nothing.
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

  // The first process of its tree, by which its file is known: kNobody is used
  // for everything without --set split=yes, and for operations without a known
  // process.
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

  // What an open file is called: copies of older traces name the file that they
  // write by its handle only.
  std::string_view PathOfHandle(uint64_t fh) const {
    const auto found = open_.find(fh);
    return found == open_.end() ? std::string_view() : found->second;
  }

  using Moves = std::vector<buildxl::Names::Moved>;

  // `wanted`: its rows are.
  void Take(ProcessId process, uint32_t number, const FileStep& step,
            bool wanted) {
    Moves moves;
    if (step.op == Op::rename_ && step.error == 0 && !step.path.empty() &&
        !step.path2.empty()) {
      names_budget_ += kNamesOfARename;
      moves = names_.Rename(step, &names_budget_);
      if (names_budget_ == 0) ++left_out_;
    }
    if (wanted) AddRows(FileOf(process), number, step, moves);
    Note(step);
  }

  void AddRows(File& file, uint32_t pid, const FileStep& step,
               const Moves& moves) {
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
    if (!moves.empty()) {
      AddMoves(file, facts, moves);
    } else if (rows.count == 2) {
      AddPair(file, rows, facts, step);
    } else {
      file.AddRow(rows.row[0], step.path, facts);
    }
    Keep(file.status());
  }

  void AddPair(File& file, const buildxl::Rows& rows, File::RowFacts facts,
               const FileStep& step) {
    facts.correlation = file.AddRow(rows.row[0], step.path, facts);
    const std::string_view second =
        step.path2.empty() && step.op == Op::copy_file_range_
            ? PathOfHandle(step.fh_out)
            : step.path2;
    if (second.empty()) {
      ++left_out_;
      return;
    }
    file.AddRow(rows.row[1], second, facts);
  }

  // A pair of rows for the file and for each one below it that is known.
  void AddMoves(File& file, File::RowFacts facts, const Moves& moves) {
    for (const buildxl::Names::Moved& m : moves) {
      moved_directories_ = moved_directories_ || m.is_directory;
      const buildxl::Rows rows = buildxl::RowsOfRename(m.is_directory);
      facts.attributes = buildxl::AttributesOf(m.is_directory);
      facts.correlation = 0;
      facts.correlation = file.AddRow(rows.row[0], paths_.Text(m.from), facts);
      file.AddRow(rows.row[1], paths_.Text(m.to), facts);
    }
  }

  // What the operation tells of names and handles.
  void Note(const FileStep& step) {
    names_.Take(step);
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

  // A process that was there already is a tree of its own, as are its children:
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
    Take(process.id, process.number, step, IsWanted(process.id));
  }

  void DidWithout(ProcessId id, uint32_t number,
                  const FileStep& step) override {
    const bool nobodys = id == build::kNobody;
    Take(id, nobodys ? 0 : number, step,
         nobodys ? options_.root_pid == 0 : IsWanted(id));
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
  buildxl::Names names_;
  size_t names_budget_ = size_t{1} << 20;
  bool moved_directories_ = false;
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

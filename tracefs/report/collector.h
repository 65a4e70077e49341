// Collector: one pass over the operations of traces, in bounded memory: all
// sums that the page and its other forms (document.h) are made from.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/event/process_record.h"
#include "tracefs/format/record.h"
#include "tracefs/headline/headline.h"
#include "tracefs/report/access_pattern.h"
#include "tracefs/report/counted.h"
#include "tracefs/report/file_uses.h"
#include "tracefs/report/flame.h"
#include "tracefs/report/latency.h"
#include "tracefs/report/latency_cells.h"
#include "tracefs/report/name_tree.h"
#include "tracefs/report/processes.h"
#include "tracefs/report/recent.h"
#include "tracefs/report/series.h"
#include "tracefs/report/slow_operations.h"
#include "tracefs/report/time_grid.h"
#include "tracefs/tally/sums.h"

namespace tracefs::report {

// What is summed up for one operation.
struct OpSums {
  tally::Sums sums;
  tally::Histogram latency;
  BinRow counts;  // fine bins
  Series series;  // coarse ones, as all of these
  LatencyCells cells;
};

// A loss of operations that the trace tells of.
struct LossSeen {
  uint64_t real_ns = 0;  // when it began, or about when
  uint64_t count = 0;
  std::string reason;
};

// Used by one thread.
class Collector {
 public:
  static constexpr size_t kMostLosses = 1000;

  Collector();
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;

  // Operations in order of time, as TraceSet hands them out; `trace` is its
  // number.
  void Add(const format::Record& record, size_t trace);
  void AddProcess(const ProcessRecord& record, size_t trace,
                  std::string_view mount_point = {});
  void AddCounted(const format::AggregateRecord& record, size_t trace) {
    counted_.Add(record, trace, &grid_);
  }
  // One that is left out because it is not of the time that is asked about.
  void CutCounted(const format::AggregateRecord& record) {
    counted_.Cut(record);
  }
  // A report about a loss, when it comes.
  void AddLoss(const format::Report& report);

  // --- What came out. Not const where bins are brought up to date.
  const tally::Sums& total() const { return total_; }
  uint64_t untimed() const { return untimed_; }  // without a begin time
  uint64_t before() const { return before_; }    // told before they ran
  uint64_t inferred() const { return inferred_; }
  const TimeGrid& grid() const { return grid_; }
  std::array<std::unique_ptr<OpSums>, kOpCount>& ops() { return ops_; }
  const tally::Histogram& latency() const { return latency_; }
  BinRow& errors() { return errors_; }
  BinRow& read() { return read_; }
  BinRow& written() { return written_; }
  BinRow& time() { return time_; }
  // By rows of latency.h, in coarse bins.
  std::array<BinRow, kLatencyRows>& latency_rows() { return rows_; }
  // Files and directories: their children in the root are the roots of mounts.
  NameTree& files() { return files_; }
  NameTree& extensions() { return extensions_; }
  NameTree& users() { return users_; }
  NameTree& commands() { return commands_; }
  // Command > path > operation.
  NameTree& flame() { return flame_.Tree(); }
  // Errno > operation > command.
  NameTree& failures() { return failures_; }
  Processes& processes() { return processes_; }
  AccessSums& access() { return access_; }
  // Of files() and processes().
  const FileUses& uses() const { return uses_; }
  const Headline& headline() const { return headline_; }
  const SlowOperations& slow() const { return slow_; }
  const std::vector<LossSeen>& losses() const { return losses_; }
  uint64_t losses_left_out() const { return losses_left_out_; }
  // What aggregate drivers counted; with bins up to date.
  std::vector<CountedTable*> counted() { return counted_.Tables(grid_); }
  uint64_t counted_left_out() const { return counted_.tables_left_out(); }
  bool counted_cut() const { return counted_.cut(); }
  // Whether a trace has operations one by one.
  bool HasOperations(size_t trace) const {
    return trace < has_operations_.size() && has_operations_[trace];
  }
  // The path of a node of files(), from the root of the mount.
  std::string PathOf(NodeId node) const;

 private:
  // What is remembered of path ids of the block that is being read.
  struct BlockMemo {
    const format::BlockDecoder* block = nullptr;
    uint64_t sequence = 0;
    size_t trace = 0;
    std::vector<NodeId> nodes;
  };

  NodeId FileOf(const format::Record& record, size_t trace);
  NodeId SecondFileOf(const format::Record& record, size_t trace);
  NodeId NodeOfPathId(const format::Record& record, uint64_t path_id,
                      size_t trace);
  NodeId NodeOfText(std::string_view path);
  NodeId ExtensionOf(NodeId file);
  NodeId UserOf(const Event& event);
  NodeId FailureOf(const Event& event, NodeId command);
  void AddTimes(const Event& event, uint64_t real_ns, const tally::Sums& what);
  void AddToFile(const format::Record& record, NodeId file, NodeId command,
                 const tally::Sums& what);
  void KeepSlow(const format::Record& record, uint64_t took, NodeId file,
                std::string_view comm);
  void KeepBounded();
  void KeepProcessesBounded();

  TimeGrid grid_;
  tally::Sums total_;
  uint64_t untimed_ = 0;
  uint64_t before_ = 0;
  uint64_t inferred_ = 0;
  uint64_t last_real_ns_ = 0;
  std::array<std::unique_ptr<OpSums>, kOpCount> ops_;
  tally::Histogram latency_;
  BinRow errors_, read_, written_, time_;
  std::array<BinRow, kLatencyRows> rows_;

  NameTree files_;
  NameTree extensions_;
  NameTree users_;
  NameTree commands_;
  Flame flame_;
  NameTree failures_;
  Processes processes_;
  AccessSums access_;
  Headline headline_;
  BlockMemo memo_;
  std::vector<NodeId> extension_of_;  // by file; 0 = not looked for
  Recent user_of_{256};
  Recent failure_of_{1024};
  SlowOperations slow_;
  FileUses uses_;

  std::vector<LossSeen> losses_;
  uint64_t losses_left_out_ = 0;
  std::vector<bool> has_operations_;  // by trace
  Counted counted_;
};

}  // namespace tracefs::report

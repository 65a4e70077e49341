#include "tracefs/export/process_tree.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/join.h"
#include "tracefs/base/units.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/tally/sums.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/units.h"

namespace tracefs {
namespace {

using build::FileStep;
using build::Process;
using build::ProcessId;

constexpr size_t kDefaultWidth = 24;
constexpr size_t kMaxWidth = 400;
// Deeper ones are drawn no further to the right.
constexpr size_t kMaxIndent = 64;

class TreeExporter final : public Exporter, private build::TrackerListener {
 public:
  TreeExporter(OutputBuffer& out, size_t width)
      : out_(out), width_(width), tracker_(*this) {}

  void Write(const format::Record& record) override {
    if (const FileStep* const step = steps_.Of(record)) tracker_.Take(*step);
  }
  void WriteProcess(const ProcessRecord& record) override {
    tracker_.Take(record);
  }
  void Finish() override {
    tracker_.Finish();
    FindSpan();
    if (!tracker_.any_records()) {
      out_.Append(
          "# This trace has no process records: processes are known from their "
          "operations\n# only. Command lines, exit statuses and true begins "
          "and "
          "ends are not; parents\n# that did nothing under the mount are "
          "missing.\n");
    }
    std::string bar = "life";
    bar.resize(width_ == 0 ? 0 : width_ + 2, ' ');
    out_.Append(
        bar + (width_ == 0 ? "" : " ") +
        "  elapsed  exit      ops  errors     read  written  process\n");
    WriteAll();
    if (nobodys_ != 0) {
      out_.Append("# " + std::to_string(nobodys_) +
                  " operations of callers that are not known\n");
    }
  }

 private:
  struct Node {
    uint32_t pid = 0;
    ProcessId parent = build::kNobody;
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
    bool begun = false;  // its beginning, and its end, were seen
    bool ended = false;
    std::string exit;
    std::string command;
    tally::Sums sums;
    std::vector<ProcessId> children;
  };

  void ProcessBegan(const Process& process) override {
    nodes_.resize(process.id + size_t{1});
    Node& node = nodes_[process.id];
    node.pid = process.key.pid;
    node.begin_ns = process.begin_ns;
  }
  void Did(const Process& process, const FileStep& step) override {
    // Which process closes a file for good is only inferred.
    if (step.inferred) return;
    Count(step, &nodes_[process.id]);
  }
  void DidWithout(ProcessId id, uint32_t, const FileStep& step) override {
    if (step.inferred) return;
    if (id == build::kNobody) {
      ++nobodys_;
    } else {
      Count(step, &nodes_[id]);
    }
  }
  static void Count(const FileStep& step, Node* node) {
    tally::Bytes bytes;
    if (step.error == 0) {
      bytes = tally::BytesOf(step.op, static_cast<int64_t>(step.bytes));
    }
    node->sums.Add({.count = 1,
                    .errors = step.error != 0 ? uint64_t{1} : 0,
                    .bytes = bytes.moved(),
                    .read = bytes.read,
                    .written = bytes.written});
  }
  void ProcessEnded(const Process& process) override {
    Node& node = nodes_[process.id];
    // The record of its beginning may come after its first operation.
    node.parent = process.parent;
    node.begun = process.forked;
    node.end_ns = process.end_ns;
    node.ended = process.ended;
    if (process.signal) {
      node.exit = "sig " + std::to_string(*process.signal);
    } else if (process.exit_code) {
      node.exit = std::to_string(*process.exit_code);
    } else {
      node.exit = process.ended ? "?" : "-";
    }
    const build::Image& image = *process.now.image;
    node.command = JoinWords(image.argv, " ", [](const std::string& word) {
      return TerminalWord(word);
    });
    if (!node.command.empty()) return;
    std::string_view name = image.Binary();
    if (name.empty()) name = process.comm;
    node.command = name.empty() ? "?" : TerminalWord(name);
  }

  void FindSpan() {
    if (nodes_.empty()) return;
    begin_ns_ = UINT64_MAX;
    for (const Node& node : nodes_) {
      begin_ns_ = std::min(begin_ns_, node.begin_ns);
      end_ns_ = std::max(end_ns_, node.end_ns);
    }
  }

  // "[   ====  ]"; '<' and '>' where a beginning or an end was not seen.
  std::string Bar(const Node& node) const {
    if (width_ == 0) return {};
    const uint64_t span = std::max<uint64_t>(end_ns_ - begin_ns_, 1);
    const auto at = [&](uint64_t ns) {
      const double share =
          static_cast<double>(ns - begin_ns_) / static_cast<double>(span);
      return std::min(width_ - 1,
                      static_cast<size_t>(share * static_cast<double>(width_)));
    };
    std::string bar(width_, ' ');
    const size_t first = at(node.begin_ns);
    const size_t last = std::max(first, at(node.end_ns));
    std::fill(bar.begin() + static_cast<ptrdiff_t>(first),
              bar.begin() + static_cast<ptrdiff_t>(last) + 1, '=');
    if (!node.begun) bar[first] = '<';
    if (!node.ended) bar[last] = '>';
    return "[" + bar + "] ";
  }

  void WriteNode(const Node& node, const std::string& branches) {
    std::string columns;
    const auto add = [&columns](const std::string& text, size_t width) {
      columns += PadFront(text, width) + ' ';
    };
    add(UnitForTerminal(DurationText(node.end_ns - node.begin_ns), HasUtf8()),
        9);
    add(node.exit, 5);
    add(CountText(node.sums.count), 8);
    add(CountText(node.sums.errors), 7);
    add(SizeText(node.sums.read), 8);
    add(SizeText(node.sums.written), 8);
    out_.Append(Bar(node) + columns + ' ' + branches +
                std::to_string(node.pid) + " " + node.command + "\n");
  }

  void WriteAll() {
    struct Left {
      ProcessId id;
      std::string indent;
      bool root;
      bool last;
    };
    std::vector<Left> left;
    for (ProcessId id = static_cast<ProcessId>(nodes_.size()); id-- > 0;) {
      const ProcessId parent = nodes_[id].parent;
      if (parent == build::kNobody || parent >= id) {
        left.push_back({id, "", true, false});
      } else {
        nodes_[parent].children.push_back(id);  // the last one first
      }
    }
    while (!left.empty()) {
      const Left at = std::move(left.back());
      left.pop_back();
      const Node& node = nodes_[at.id];
      std::string branches = at.indent;
      std::string below = at.indent;
      if (!at.root && at.indent.size() < kMaxIndent) {
        branches += at.last ? "`-" : "|-";
        below += at.last ? "  " : "| ";
      }
      WriteNode(node, branches);
      for (size_t i = 0; i < node.children.size(); ++i) {
        left.push_back({node.children[i], below, false, i == 0});
      }
    }
  }

  OutputBuffer& out_;
  const size_t width_;
  build::ProcessTracker tracker_;
  build::RecordSteps steps_;
  std::vector<Node> nodes_;  // by process
  uint64_t begin_ns_ = 0;
  uint64_t end_ns_ = 0;
  uint64_t nobodys_ = 0;
};

}  // namespace

std::unique_ptr<Exporter> MakeTreeExporter(OutputBuffer& out,
                                           const ExportOptions& options) {
  size_t width = kDefaultWidth;
  if (options.Choice("bars") == "no") width = 0;
  if (const auto wanted = ParseUnsigned(options.Choice("width"))) {
    width = std::min<size_t>(*wanted, kMaxWidth);
  }
  return std::make_unique<TreeExporter>(out, width);
}

}  // namespace tracefs

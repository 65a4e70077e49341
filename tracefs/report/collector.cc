#include "tracefs/report/collector.h"

#include <algorithm>
#include <utility>

#include "tracefs/format/block_decoder.h"
#include "tracefs/tally/transfer.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::report {
namespace {

constexpr NameTree::Limits kSmall = {
    .nodes = 1 << 14, .name_bytes = size_t{4} << 20, .series_points = 1 << 18};
constexpr std::string_view kNoPath = "(path not recorded)";

// What is told of a path deeper than this stands for what lies below, too.
constexpr size_t kMostComponents = 256;

// Traces of one machine know the same processes, those of one mount the same
// open files; where nobody has looked, each is told alone.
struct Whose {
  size_t machine = 0;
  size_t mount = 0;
};
Whose WhoseIs(const format::Record& record, size_t trace) {
  if (record.trace == nullptr || record.trace->origin.machine == 0) {
    return {.machine = trace, .mount = trace};
  }
  return {.machine = record.trace->origin.machine,
          .mount = record.trace->origin.mount};
}

}  // namespace

Collector::Collector()
    : extensions_(kSmall),
      users_(kSmall),
      commands_(kSmall),
      failures_(kSmall) {}

NodeId Collector::NodeOfText(std::string_view path) {
  NodeId node = 0;
  for (size_t depth = 0; !path.empty() && depth < kMostComponents; ++depth) {
    while (path.starts_with('/')) path.remove_prefix(1);
    const size_t slash = std::min(path.find('/'), path.size());
    if (slash != 0) node = files_.Child(node, path.substr(0, slash));
    path.remove_prefix(slash);
  }
  return node;
}

NodeId Collector::NodeOfPathId(const format::Record& record, uint64_t path_id,
                               size_t trace) {
  constexpr NodeId kNone = UINT32_MAX;
  if (memo_.block != record.block || memo_.trace != trace ||
      memo_.sequence != record.block->sequence()) {
    memo_.block = record.block;
    memo_.trace = trace;
    memo_.sequence = record.block->sequence();
    memo_.nodes.clear();
  }
  // Ids are checked: there are as many as the block defines.
  if (path_id >= memo_.nodes.size()) {
    memo_.nodes.resize(static_cast<size_t>(path_id) + 1, kNone);
  }
  NodeId& node = memo_.nodes[static_cast<size_t>(path_id)];
  if (node == kNone) {
    PathBuffer buffer;
    const std::string_view path = record.block->Path(path_id, {}, buffer);
    node = path.empty() ? files_.Child(0, kNoPath) : NodeOfText(path);
  }
  return node;
}

NodeId Collector::FileOf(const format::Record& record, size_t trace) {
  const Event& event = record.event;
  if (record.HasText(Field::kPath)) {
    return NodeOfText(record.Text(Field::kPath));
  }
  if (event.parent != 0) {
    const NodeId parent = NodeOfPathId(record, event.parent, trace);
    return event.name.empty() ? parent : files_.Child(parent, event.name);
  }
  if (event.node != 0) return NodeOfPathId(record, event.node, trace);
  const NodeId nowhere = files_.Child(0, kNoPath);
  if (!event.name.empty()) return files_.Child(nowhere, event.name);
  if (!event.Has(Field::kInode)) return nowhere;
  return files_.Child(nowhere,
                      "inode " + std::to_string(event.Get(Field::kInode)));
}

NodeId Collector::SecondFileOf(const format::Record& record, size_t trace) {
  const Event& event = record.event;
  if (record.HasText(Field::kNewPath)) {
    return NodeOfText(record.Text(Field::kNewPath));
  }
  if (event.new_parent != 0) {
    const NodeId parent = NodeOfPathId(record, event.new_parent, trace);
    return event.new_name.empty() ? parent
                                  : files_.Child(parent, event.new_name);
  }
  const NodeId nowhere = files_.Child(0, kNoPath);
  if (!event.Has(Field::kInodeOut)) return nowhere;
  return files_.Child(nowhere,
                      "inode " + std::to_string(event.Get(Field::kInodeOut)));
}

NodeId Collector::ExtensionOf(NodeId file) {
  if (file >= extension_of_.size()) extension_of_.resize(file + 1);
  NodeId& extension = extension_of_[file];
  if (extension == 0) {
    const std::string_view text = tracefs::ExtensionOf(files_.NameOf(file));
    extension = extensions_.Child(0, text.empty() ? "-" : text);
  }
  return extension;
}

NodeId Collector::UserOf(const Event& event) {
  if (!event.Has(Field::kUid)) return users_.Child(0, "-");
  const uint64_t uid = event.Get(Field::kUid);
  if (const NodeId* const node = user_of_.Find(0, uid, 0)) return *node;
  const NodeId node = users_.Child(0, std::to_string(uid));
  user_of_.Keep(0, uid, 0, node);
  return node;
}

NodeId Collector::FailureOf(const Event& event, NodeId command) {
  const uint64_t number = event.Get(Field::kErrno);
  const auto op = static_cast<NodeId>(Index(event.op));
  if (const NodeId* const node = failure_of_.Find(op, number, command)) {
    return *node;
  }
  const std::string_view name = ErrnoName(number);
  NodeId node = failures_.Child(
      0, name.empty() ? std::to_string(number) : std::string(name));
  node = failures_.Child(node, OpName(event.op));
  node = failures_.Child(node, commands_.NameOf(command));
  failure_of_.Keep(op, number, command, node);
  return node;
}

void Collector::AddTimes(const Event& event, uint64_t real_ns,
                         const tally::Sums& what) {
  const Bins fine = grid_.fine();
  const Bins coarse = grid_.coarse();
  OpSums& op = *ops_[Index(event.op)];
  ++op.counts.At(fine, real_ns);
  op.series.Add(real_ns, coarse.shift, what);
  if (what.errors != 0) ++errors_.At(fine, real_ns);
  const auto add = [&](BinRow& row, uint64_t more) {
    if (more == 0) return;
    uint64_t& number = row.At(fine, real_ns);
    number = tally::AddTo(number, more);
  };
  add(read_, what.read);
  add(written_, what.written);
  add(time_, what.time_ns);
  if (event.Has(Field::kLatency)) {
    ++rows_[LatencyRowOf(what.time_ns)].At(coarse, real_ns);
    op.cells.Add(what.time_ns, real_ns, coarse);
  }
}

void Collector::AddToFile(const format::Record& record, NodeId file,
                          NodeId command, const tally::Sums& what) {
  const NodeId extension = ExtensionOf(file);
  const Bins coarse = grid_.coarse();
  const uint64_t when = record.time_resolution_ns != 0 ? record.real_ns : 0;
  if (when != 0) {
    files_.Add(file, what, record.real_ns, coarse, /*inside=*/file != 0);
    extensions_.Add(extension, what, record.real_ns, coarse);
  } else {
    files_.Add(file, what);
    extensions_.Add(extension, what);
  }
  flame_.Add(commands_, command, files_, file, record.event.op, what, when,
             coarse.shift);
}

void Collector::Add(const format::Record& record, size_t trace) {
  const Event& event = record.event;
  if (event.before) {
    ++before_;
    return;
  }
  headline_.Add(record);
  const Whose whose = WhoseIs(record, trace);
  access_.Fetch(event, whose.mount, /*soon=*/false);
  const tally::Sums what = tally::SumsOf(event);
  if (trace >= has_operations_.size()) has_operations_.resize(trace + 1);
  has_operations_[trace] = true;
  total_.Add(what);
  auto& op = ops_[Index(event.op)];
  if (op == nullptr) op = std::make_unique<OpSums>();
  op->sums.Add(what);
  if (event.Has(Field::kLatency)) {
    op->latency.Add(what.time_ns);
    latency_.Add(what.time_ns);
  }
  if (event.Has(Field::kInferred) && event.Get(Field::kInferred) != 0) {
    ++inferred_;
  }
  const bool timed = record.time_resolution_ns != 0;
  const std::string_view comm =
      record.HasText(Field::kComm) ? record.Text(Field::kComm) : "-";
  const NodeId file = FileOf(record, trace);
  const NodeId command = commands_.Child(0, comm);
  const NodeId process =
      processes_.Of(record, timed ? record.real_ns : 0, whose.machine);
  const NodeId user = UserOf(event);
  if (timed) {
    last_real_ns_ = record.real_ns;
    grid_.Reach(record.real_ns);
    AddTimes(event, record.real_ns, what);
    const Bins coarse = grid_.coarse();
    commands_.Add(command, what, record.real_ns, coarse);
    processes_.Add(process, what, record.real_ns, coarse);
    users_.Add(user, what, record.real_ns, coarse);
  } else {
    ++untimed_;
    commands_.Add(command, what);
    processes_.Add(process, what);
    users_.Add(user, what);
  }
  access_.Fetch(event, whose.mount, /*soon=*/true);
  // A copy counts with its source; what it wrote is of its destination.
  tally::Sums of_file = what;
  if (HasTwoFiles(event.op)) {
    of_file.written = 0;
    of_file.bytes = of_file.read;
  }
  AddToFile(record, file, command, of_file);
  if (of_file.written != what.written) {
    const NodeId second = SecondFileOf(record, trace);
    const tally::Sums of_second = {.bytes = what.written,
                                   .written = what.written};
    AddToFile(record, second, command, of_second);
    uses_.Add(second, process, of_second);
  }
  uses_.Add(file, process, of_file);
  if (what.errors != 0) {
    const NodeId failure = FailureOf(event, command);
    if (timed) {
      failures_.Add(failure, what, record.real_ns, grid_.coarse());
    } else {
      failures_.Add(failure, what);
    }
  }
  access_.Take(event, whose.mount, timed ? record.real_ns : 0, grid_.coarse());
  if (event.Has(Field::kLatency)) KeepSlow(record, what.time_ns, file, comm);
  KeepBounded();
}

void Collector::KeepSlow(const format::Record& record, uint64_t took,
                         NodeId file, std::string_view comm) {
  const Event& event = record.event;
  SlowOperation slow;
  slow.real_ns = record.time_resolution_ns != 0 ? record.real_ns : 0;
  slow.time_ns = took;
  slow.pid = event.GetOr0(Field::kPid);
  const Bins coarse = grid_.coarse();
  if (!slow_.Wants(slow, coarse)) return;
  slow.op = event.op;
  slow.error = event.Has(Field::kErrno)
                   ? static_cast<uint32_t>(event.Get(Field::kErrno))
                   : 0;
  slow.comm = comm;
  slow.path = PathOf(file);
  slow_.Add(slow, coarse);
}

void Collector::KeepProcessesBounded() {
  const std::vector<NodeId> now = processes_.KeepBounded();
  if (!now.empty()) uses_.Renumber({}, now);
}

void Collector::KeepBounded() {
  KeepProcessesBounded();
  if (files_.HasTooManyPoints()) files_.DropSeries();
  bool folded = false;
  if (files_.IsFull()) {
    uses_.Renumber(files_.Fold(), {});
    folded = true;
  }
  for (NameTree* const tree : {&extensions_, &users_, &commands_, &failures_}) {
    if (tree->HasTooManyPoints()) tree->DropSeries();
    if (!tree->IsFull()) continue;
    tree->Fold();
    folded = true;
  }
  if (!folded) return;
  // Numbers of nodes have changed.
  memo_.block = nullptr;
  extension_of_.clear();
  flame_.Renumber();
  user_of_.Clear();
  failure_of_.Clear();
}

void Collector::AddProcess(const ProcessRecord& record, size_t trace,
                           std::string_view mount_point) {
  headline_.AddProcess(record, mount_point);
  processes_.Take(record,
                  record.process.machine != 0 ? record.process.machine : trace);
  KeepProcessesBounded();
}

void Collector::AddLoss(const format::Report& report) {
  if (losses_.size() >= kMostLosses) {
    ++losses_left_out_;
    return;
  }
  losses_.push_back(
      {.real_ns = report.begin_ns != 0 ? report.begin_ns : last_real_ns_,
       .count = report.count,
       .reason = std::string(report.detail)});
}

std::string Collector::PathOf(NodeId node) const {
  std::vector<NodeId> line;
  for (NodeId at = node; at != 0; at = files_.at(at).parent) line.push_back(at);
  if (line.empty()) return "/";
  std::string path;
  const bool nowhere = files_.NameOf(line.back()) == kNoPath;
  for (size_t i = line.size(); i-- > 0;) {
    if (!nowhere || !path.empty()) path += nowhere ? ' ' : '/';
    path += files_.NameOf(line[i]);
  }
  return path;
}

}  // namespace tracefs::report

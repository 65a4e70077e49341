#include "tracefs/build/graph_index.h"

#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/varint.h"

namespace tracefs::build {
namespace {

enum ProcessBits : uint8_t {
  kIsRecorded = 1,
  kHasEnded = 2,
  kEndIsLate = 4,
};

// kNobody as 0.
uint64_t OrNobody(uint32_t id) { return (uint64_t{id} + 1) & UINT32_MAX; }

void AppendText(std::string_view text, std::string* out) {
  AppendVarint(text.size(), out);
  *out += text;
}

// Small where it is near to what it is compared with, on either side.
uint64_t Distance(uint64_t value, uint64_t from) {
  const auto difference = static_cast<int64_t>(value - from);
  return static_cast<uint64_t>(difference) << 1 ^
         static_cast<uint64_t>(difference >> 63);
}
uint64_t FromDistance(uint64_t distance, uint64_t from) {
  return from + (distance >> 1 ^ (~(distance & 1) + 1));
}

constexpr uint64_t UseTimes::*kUseTimes[] = {
    &UseTimes::first_read_ns, &UseTimes::last_read_ns,
    &UseTimes::first_write_ns, &UseTimes::last_write_ns,
    &UseTimes::first_absent_ns};

// What is alike in many uses.
uint64_t KindOf(const FileUse& use) {
  return uint64_t{use.access} << 24 | uint64_t{use.open_mode} << 16 |
         uint64_t{use.opened} << 8 | use.type;
}

}  // namespace

// Reads and writes what a graph is made of.
class GraphCodec {
 public:
  static std::string Core(const BuildGraph& graph) {
    std::string out;
    AppendVarint(graph.has_process_records_ ? 1 : 0, &out);
    AppendVarint(graph.without_caller_, &out);
    AppendVarint(graph.unknown_copies_, &out);
    AppendVarint(graph.crowded_pipes_, &out);
    PutPaths(graph.paths_, &out);
    const std::vector<uint64_t> images = PutImages(graph, &out);
    PutProcesses(graph, &out);
    PutExecutions(graph, images, &out);
    PutUses(graph, &out);
    PutLastWriters(graph, &out);
    AppendVarint(graph.pipes_.size(), &out);
    for (const PipeEdge& edge : graph.pipes_) {
      for (const ExecutionName* const end : {&edge.writer, &edge.reader}) {
        AppendVarint(OrNobody(end->process), &out);
        AppendVarint(end->index, &out);
        AppendVarint(OrNobody(end->id), &out);
      }
    }
    return out;
  }

  static std::string Facts(const BuildGraph& graph) {
    std::string out;
    for (const PathFacts& facts : graph.facts_) {
      AppendVarint(uint64_t{facts.type} << 1 | (facts.gone ? 1 : 0), &out);
      AppendVarint(facts.size, &out);
      AppendVarint(facts.mtime_ns, &out);
    }
    AppendVarint(graph.double_writes_.size(), &out);
    for (const DoubleWrite& twice : graph.double_writes_) {
      AppendVarint(twice.path, &out);
      AppendVarint(static_cast<uint64_t>(twice.kind), &out);
      AppendVarint(OrNobody(twice.first), &out);
      AppendVarint(OrNobody(twice.second), &out);
      AppendVarint(twice.first_ns, &out);
      AppendVarint(Distance(twice.second_ns, twice.first_ns), &out);
    }
    return out;
  }

  static std::string Times(const BuildGraph& graph) {
    std::string out;
    for (const GraphExecution& execution : graph.executions_) {
      uint64_t near = execution.begin_ns;
      for (size_t i = 0; i < execution.use_count; ++i) {
        const UseTimes& times = graph.times_[execution.first_use + i];
        uint64_t there = 0;
        for (size_t t = 0; t < std::size(kUseTimes); ++t) {
          if (times.*kUseTimes[t] != 0) there |= uint64_t{1} << t;
        }
        AppendVarint(there, &out);
        for (const auto time : kUseTimes) {
          if (times.*time == 0) continue;
          AppendVarint(Distance(times.*time, near), &out);
          near = times.*time;
        }
      }
    }
    return out;
  }

  explicit GraphCodec(ByteSpan bytes) : in_(bytes) {}

  bool ReadCore(BuildGraph* graph) {
    graph->has_process_records_ = in_.Take() != 0;
    graph->without_caller_ = in_.Take();
    graph->unknown_copies_ = in_.Take();
    graph->crowded_pipes_ = in_.Take();
    if (!ReadPaths(&graph->paths_) || !ReadImages() || !ReadProcesses(graph) ||
        !ReadExecutions(graph) || !ReadUses(graph) || !ReadLastWriters(graph) ||
        !ReadPipes(graph) || !in_.at_end()) {
      return false;
    }
    graph->facts_.resize(graph->paths_.size());
    graph->IndexPaths();
    return graph->WalkTree();
  }

  bool ReadFacts(BuildGraph* graph) {
    for (PathFacts& facts : graph->facts_) {
      const uint64_t bits = in_.Take();
      facts.gone = (bits & 1) != 0;
      facts.type = static_cast<uint8_t>(bits >> 1);
      facts.size = in_.Take();
      facts.mtime_ns = in_.Take();
    }
    const uint64_t count = TakeCount();
    for (uint64_t i = 0; i < count && !in_.bad(); ++i) {
      DoubleWrite twice;
      twice.path = TakeBelow(graph->paths_.size());
      twice.kind = static_cast<DoubleWrite::Kind>(TakeBelow(3));
      twice.first = TakeId(graph->executions_.size());
      twice.second = TakeId(graph->executions_.size());
      twice.first_ns = in_.Take();
      twice.second_ns = FromDistance(in_.Take(), twice.first_ns);
      if (twice.first == kNobody || twice.second == kNobody) return false;
      graph->double_writes_.push_back(twice);
    }
    return Good() && in_.at_end();
  }

  bool ReadTimes(BuildGraph* graph) {
    if (graph->uses_.size() > in_.left()) return false;
    graph->times_.resize(graph->uses_.size());
    for (const GraphExecution& execution : graph->executions_) {
      uint64_t near = execution.begin_ns;
      for (size_t i = 0; i < execution.use_count; ++i) {
        UseTimes& times = graph->times_[execution.first_use + i];
        const uint64_t there = in_.Take();
        for (size_t t = 0; t < std::size(kUseTimes); ++t) {
          if ((there >> t & 1) == 0) continue;
          near = FromDistance(in_.Take(), near);
          times.*kUseTimes[t] = near;
        }
      }
      if (in_.bad()) return false;
    }
    return in_.at_end();
  }

 private:
  static void PutPaths(const PathTable& paths, std::string* out) {
    AppendVarint(paths.size() - 1, out);
    for (PathId id = 1; id < paths.size(); ++id) {
      AppendVarint(id - paths.Parent(id), out);
      AppendText(paths.Name(id), out);
    }
  }

  // Returns the number of each execution's.
  static std::vector<uint64_t> PutImages(const BuildGraph& graph,
                                         std::string* out) {
    std::unordered_map<const Image*, uint64_t> numbers;
    std::vector<const Image*> images;
    std::vector<uint64_t> of_executions;
    for (const GraphExecution& execution : graph.executions_) {
      const Image* const image = execution.image.get();
      const auto [known, fresh] = numbers.emplace(image, images.size());
      if (fresh) images.push_back(image);
      of_executions.push_back(known->second);
    }
    AppendVarint(images.size(), out);
    for (const Image* const image : images) {
      AppendText(image->exe, out);
      AppendText(image->program, out);
      AppendText(image->cwd, out);
      AppendVarint(image->argv.size(), out);
      for (const std::string& word : image->argv) AppendText(word, out);
    }
    return of_executions;
  }

  static void PutProcesses(const BuildGraph& graph, std::string* out) {
    AppendVarint(graph.processes_.size(), out);
    uint64_t near = 0;
    for (const GraphProcess& process : graph.processes_) {
      AppendVarint(process.key.pid, out);
      AppendVarint(process.key.start_ticks, out);
      AppendVarint(OrNobody(process.parent), out);
      AppendVarint(process.parent_pid, out);
      AppendVarint(process.parent_index, out);
      AppendVarint(Distance(process.begin_ns, near), out);
      AppendVarint(Distance(process.end_ns, process.begin_ns), out);
      AppendVarint((process.recorded ? kIsRecorded : 0) |
                       (process.ended ? kHasEnded : 0) |
                       (process.late_end ? kEndIsLate : 0),
                   out);
      AppendText(process.comm, out);
      AppendVarint(process.executions.size(), out);
      for (const ExecutionId id : process.executions) AppendVarint(id, out);
      near = process.begin_ns;
    }
  }

  static void PutExecutions(const BuildGraph& graph,
                            const std::vector<uint64_t>& images,
                            std::string* out) {
    AppendVarint(graph.executions_.size(), out);
    uint64_t near = 0;
    const uint64_t* image = images.data();
    for (const GraphExecution& execution : graph.executions_) {
      AppendVarint(OrNobody(execution.process), out);
      AppendVarint(execution.index, out);
      AppendVarint(Distance(execution.begin_ns, near), out);
      AppendVarint(Distance(execution.end_ns, execution.begin_ns), out);
      AppendVarint(*image++, out);
      AppendVarint(execution.use_count, out);
      near = execution.begin_ns;
    }
  }

  // One execution after the other, whatever their order in the graph's list.
  static void PutUses(const BuildGraph& graph, std::string* out) {
    std::unordered_map<uint64_t, uint64_t> numbers;
    std::vector<uint64_t> kinds;
    for (const FileUse& use : graph.uses_) {
      if (numbers.emplace(KindOf(use), kinds.size()).second) {
        kinds.push_back(KindOf(use));
      }
    }
    AppendVarint(kinds.size(), out);
    for (const uint64_t kind : kinds) AppendVarint(kind, out);
    for (ExecutionId id = 0; id < graph.executions_.size(); ++id) {
      PathId near = 0;
      for (const FileUse& use : graph.UsesOf(id)) {
        AppendVarint(use.path - near, out);
        AppendVarint(numbers[KindOf(use)], out);
        near = use.path;
      }
    }
  }

  static void PutLastWriters(const BuildGraph& graph, std::string* out) {
    uint64_t count = 0;
    for (const ExecutionId writer : graph.last_writers_) {
      count += writer != kNobody ? 1 : 0;
    }
    AppendVarint(count, out);
    PathId near = 0;
    for (PathId path = 0; path < graph.last_writers_.size(); ++path) {
      if (graph.last_writers_[path] == kNobody) continue;
      AppendVarint(path - near, out);
      AppendVarint(graph.last_writers_[path], out);
      near = path;
    }
  }

  bool Good() const { return !in_.bad() && !wrong_; }
  // A number of things that take so many bytes each at least, here and further
  // on. What they are is made as it is read: most claims end early.
  uint64_t TakeCount(uint64_t least = 1) {
    const uint64_t count = in_.Take();
    if (count <= in_.left() / least) return count;
    wrong_ = true;
    return 0;
  }
  uint32_t TakeBelow(uint64_t end) {
    const uint64_t value = in_.Take();
    if (value < end) return static_cast<uint32_t>(value);
    wrong_ = true;
    return 0;
  }
  uint32_t TakeId(uint64_t end) {
    return static_cast<uint32_t>(TakeBelow(end + 1) + uint64_t{kNobody});
  }
  uint32_t TakeSmall() { return TakeBelow(uint64_t{1} << 32); }
  std::string TakeText() { return std::string(AsText(in_.TakeBytes())); }

  bool ReadPaths(PathTable* paths) {
    const uint64_t count = TakeCount();
    for (uint64_t i = 1; i <= count && Good(); ++i) {
      const uint64_t up = in_.Take();
      const std::string_view name = AsText(in_.TakeBytes());
      if (up == 0 || up > i || name.empty() || name.find('/') != name.npos ||
          name == "." || name == ".." ||
          paths->Add(static_cast<PathId>(i - up), name) != i) {
        return false;
      }
    }
    return Good();
  }

  bool ReadImages() {
    // Four numbers, and the six of an execution that has it.
    const uint64_t count = TakeCount(10);
    for (uint64_t i = 0; i < count && Good(); ++i) {
      const auto image = std::make_shared<Image>();
      image->exe = TakeText();
      image->program = TakeText();
      image->cwd = TakeText();
      const uint64_t words = TakeCount();
      for (uint64_t w = 0; w < words && Good(); ++w) {
        image->argv.push_back(TakeText());
      }
      images_.push_back(image);
    }
    return Good();
  }

  bool ReadProcesses(BuildGraph* graph) {
    // Nine numbers, how many executions there are, and the first of them.
    const uint64_t count = TakeCount(11);
    uint64_t near = 0;
    for (uint64_t n = 0; n < count; ++n) {
      GraphProcess& process = graph->processes_.emplace_back();
      process.key.pid = TakeSmall();
      process.key.start_ticks = in_.Take();
      process.parent = TakeId(count);
      process.parent_pid = TakeSmall();
      process.parent_index = TakeSmall();
      process.begin_ns = near = FromDistance(in_.Take(), near);
      process.end_ns = FromDistance(in_.Take(), process.begin_ns);
      const uint64_t bits = in_.Take();
      process.recorded = (bits & kIsRecorded) != 0;
      process.ended = (bits & kHasEnded) != 0;
      process.late_end = (bits & kEndIsLate) != 0;
      process.comm = TakeText();
      const uint64_t executions = TakeCount();
      if (executions == 0 || !Good()) return false;
      for (uint64_t i = 0; i < executions; ++i) {
        process.executions.push_back(TakeSmall());
      }
      if (!Good()) return false;
    }
    return Good();
  }

  bool ReadExecutions(BuildGraph* graph) {
    const uint64_t count = TakeCount(6);
    uint64_t near = 0;
    uint64_t uses = 0;
    for (uint64_t n = 0; n < count; ++n) {
      GraphExecution& execution = graph->executions_.emplace_back();
      execution.process = TakeId(graph->processes_.size());
      execution.index = TakeSmall();
      execution.begin_ns = near = FromDistance(in_.Take(), near);
      execution.end_ns = FromDistance(in_.Take(), execution.begin_ns);
      const uint32_t image = TakeBelow(images_.size());
      if (!Good() || execution.process == kNobody) return false;
      execution.image = images_[image];
      execution.first_use = uses;
      execution.use_count = in_.Take();
      // Each takes two bytes.
      if (execution.use_count > in_.left() / 2) return false;
      uses += execution.use_count;
    }
    if (uses > in_.left() / 2 || uses > UINT32_MAX) return false;
    graph->uses_.resize(uses);
    // Each execution is of one process, in its place.
    size_t placed = 0;
    for (ProcessId process = 0; process < graph->processes_.size(); ++process) {
      uint32_t index = 0;
      for (const ExecutionId id : graph->processes_[process].executions) {
        if (id >= graph->executions_.size()) return false;
        const GraphExecution& execution = graph->executions_[id];
        if (execution.process != process || execution.index != index++) {
          return false;
        }
        ++placed;
      }
    }
    return Good() && placed == graph->executions_.size();
  }

  bool ReadUses(BuildGraph* graph) {
    std::vector<FileUse> kinds;
    // A number, and the two of a use that is of it.
    const uint64_t count = TakeCount(3);
    for (uint64_t n = 0; n < count; ++n) {
      FileUse& use = kinds.emplace_back();
      const uint64_t kind = in_.Take();
      use.access = static_cast<uint16_t>(kind >> 24);
      use.open_mode = static_cast<uint8_t>(kind >> 16);
      use.opened = (kind >> 8 & 0xff) != 0;
      use.type = static_cast<uint8_t>(kind);
    }
    const uint64_t paths = graph->paths_.size();
    FileUse* use = graph->uses_.data();
    for (const GraphExecution& execution : graph->executions_) {
      uint64_t near = 0;
      for (size_t i = 0; i < execution.use_count; ++i, ++use) {
        near += in_.Take();
        const uint64_t kind = in_.Take();
        if (near >= paths || kind >= kinds.size()) return false;
        *use = kinds[kind];
        use->path = static_cast<PathId>(near);
      }
    }
    return Good();
  }

  bool ReadLastWriters(BuildGraph* graph) {
    graph->last_writers_.assign(graph->paths_.size(), kNobody);
    const uint64_t count = TakeCount();
    uint64_t path = 0;
    for (uint64_t i = 0; i < count && Good(); ++i) {
      path += in_.Take();
      const uint32_t writer = TakeBelow(graph->executions_.size());
      if (path >= graph->last_writers_.size()) return false;
      graph->last_writers_[path] = writer;
    }
    return Good();
  }

  bool ReadPipes(BuildGraph* graph) {
    const uint64_t count = TakeCount();
    for (uint64_t i = 0; i < count && Good(); ++i) {
      PipeEdge edge;
      for (ExecutionName* const end : {&edge.writer, &edge.reader}) {
        end->process = TakeId(graph->processes_.size());
        end->index = TakeSmall();
        end->id = TakeId(graph->executions_.size());
        if (end->id == kNobody ||
            graph->executions_[end->id].process != end->process) {
          return false;
        }
      }
      graph->pipes_.push_back(edge);
    }
    return Good();
  }

  VarintCursor in_;
  bool wrong_ = false;
  std::vector<std::shared_ptr<const Image>> images_;
};

std::string EncodeGraph(const BuildGraph& graph, GraphSection section) {
  switch (section) {
    case GraphSection::kCore:
      return GraphCodec::Core(graph);
    case GraphSection::kFacts:
      return GraphCodec::Facts(graph);
    case GraphSection::kTimes:
      return GraphCodec::Times(graph);
  }
  return {};
}

bool MayIndex(const format::ReadStats& stats) {
  format::ReadStats so_far = stats;
  so_far.ended = false;
  return !so_far.Bad() && !stats.snapshot && stats.first_part == 0 &&
         stats.goes_on == 0 && !stats.jumped && stats.unordered_events == 0 &&
         stats.changes == 0 && stats.opaque == 0 && stats.losses.empty() &&
         stats.unknown_frames == 0 && stats.unknown_messages.empty() &&
         stats.unknown_arguments.empty();
}

void WriteGraphIndex(const BuildGraph& graph, const format::IndexedPart& part,
                     const std::function<void(ByteSpan messages)>& put) {
  constexpr size_t kMost = format::IndexPiece::kMostBytes;
  constexpr size_t kHeads = 256;  // of the other arguments
  std::vector<std::byte> memory(kMost + kHeads);
  for (size_t section = 0; section < kGraphSections; ++section) {
    const std::string bytes =
        EncodeGraph(graph, static_cast<GraphSection>(section));
    const size_t pieces = (bytes.size() + kMost - 1) / kMost;
    for (size_t i = 0; i < pieces; ++i) {
      format::MessageWriter out(memory);
      const std::string_view data =
          std::string_view(bytes).substr(i * kMost, kMost);
      static_cast<void>(
          WriteIndexPiece(out, {.of = kGraphForm,
                                .part = part,
                                .section = static_cast<uint8_t>(section),
                                .piece = static_cast<uint32_t>(i),
                                .pieces = static_cast<uint32_t>(pieces),
                                .data = AsBytes(data)}));
      put(out.bytes());
    }
  }
}

Result<BuildGraph> DecodeGraph(
    const std::array<ByteSpan, kGraphSections>& sections) {
  BuildGraph graph;
  const auto wrong = [](const char* which) {
    return Status::Corrupt(std::string("its index is none: ") + which);
  };
  if (!GraphCodec(sections[0]).ReadCore(&graph)) return wrong("the core");
  if (!sections[1].empty() && !GraphCodec(sections[1]).ReadFacts(&graph)) {
    return wrong("facts");
  }
  if (!sections[2].empty() && !GraphCodec(sections[2]).ReadTimes(&graph)) {
    return wrong("times");
  }
  return graph;
}

}  // namespace tracefs::build

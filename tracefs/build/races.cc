#include "tracefs/build/races.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>
#include <utility>

#include "tracefs/build/process_order.h"

namespace tracefs::build {
namespace {

using PathUse = BuildGraph::PathUse;

// Finds the last of a row of numbers before some place that is above a bound: a
// tree of maxima over it.
class MaximumTree {
 public:
  explicit MaximumTree(const std::vector<uint64_t>& numbers)
      : leaves_(std::bit_ceil(numbers.size() + 1)), most_(2 * leaves_, 0) {
    std::ranges::copy(numbers, most_.begin() + static_cast<ptrdiff_t>(leaves_));
    for (size_t i = leaves_ - 1; i > 0; --i) {
      most_[i] = std::max(most_[2 * i], most_[2 * i + 1]);
    }
  }

  // `before`: at most as many as there are numbers.
  std::optional<size_t> LastAbove(uint64_t bound, size_t before) const {
    // Up and to the left until there is one below, then down to the last.
    size_t at = before + leaves_;
    for (;;) {
      while (at % 2 == 0) at /= 2;
      if (at == 1) return std::nullopt;
      --at;
      if (most_[at] > bound) break;
    }
    while (at < leaves_) at = most_[2 * at + 1] > bound ? 2 * at + 1 : 2 * at;
    return at - leaves_;
  }

 private:
  const size_t leaves_;
  std::vector<uint64_t> most_;
};

class RaceFinder {
 public:
  RaceFinder(const BuildGraph& graph, const RaceLimits& limits)
      : graph_(graph), limits_(limits), order_(graph) {
    races_.whole_lives = graph.has_process_records();
  }

  Races Find() {
    for (PathId path = 0; path < graph_.paths().size(); ++path) {
      const std::vector<PathUse> uses = graph_.UsesOfPath(path);
      if (uses.size() < 2) continue;
      std::vector<PathUse> writers;
      std::ranges::copy_if(
          uses, std::back_inserter(writers),
          [](const PathUse& use) { return use.use->Writes(); });
      if (writers.empty()) continue;
      ++races_.looked_at;
      path_ = path;
      if (uses.size() <= limits_.users) {
        CompareAll(writers, uses);
      } else {
        ++races_.crowded_files;
        CompareNear(std::move(writers), uses);
      }
    }
    std::ranges::stable_sort(races_.list, {}, &Race::kind);
    return std::move(races_);
  }

 private:
  void CompareAll(const std::vector<PathUse>& writers,
                  const std::vector<PathUse>& uses) {
    for (const PathUse& writer : writers) {
      for (const PathUse& reader : uses) Compare(writer, reader);
    }
  }

  void CompareNear(std::vector<PathUse> writers,
                   const std::vector<PathUse>& uses) {
    std::ranges::stable_sort(writers, {}, [](const PathUse& writer) {
      return writer.times->first_write_ns;
    });
    std::vector<uint64_t> ends;
    ends.reserve(writers.size());
    for (const PathUse& writer : writers) {
      ends.push_back(writer.times->last_write_ns);
    }
    const MaximumTree tree(ends);
    for (const PathUse& reader : uses) {
      const UseTimes& r = *reader.times;
      const bool reads = reader.use->Reads() && r.first_read_ns != 0;
      std::set<size_t> near;
      if (reads || r.first_absent_ns != 0) {
        AddNear(writers, tree, reads ? r.first_read_ns : r.first_absent_ns,
                reads, &near);
      }
      if (reads) AddNear(writers, tree, r.last_read_ns, reads, &near);
      for (const size_t i : near) Compare(writers[i], reader);
    }
  }

  // The writers nearest to that time.
  void AddNear(const std::vector<PathUse>& writers, const MaximumTree& tree,
               uint64_t at, bool reads, std::set<size_t>* near) const {
    const auto next = std::ranges::upper_bound(
        writers, at, {},
        [](const PathUse& writer) { return writer.times->first_write_ns; });
    const auto begun = static_cast<size_t>(next - writers.begin());
    for (size_t i = begun; i < writers.size() && i < begun + limits_.nearest;
         ++i) {
      near->insert(i);
    }
    std::optional<size_t> place = begun;
    for (size_t i = 0; reads && i < limits_.nearest; ++i) {
      place = tree.LastAbove(at, *place);
      if (!place) break;
      near->insert(*place);
    }
  }

  // What one does first and last with the file; the first of these that races
  // is told.
  void Compare(const PathUse& writing, const PathUse& reading) {
    const UseTimes& r = *reading.times;
    if (!reading.use->Reads() || r.first_read_ns == 0) {
      Compare(writing, reading, r.first_absent_ns);
    } else if (!Compare(writing, reading, r.first_read_ns) &&
               r.last_read_ns != r.first_read_ns) {
      Compare(writing, reading, r.last_read_ns);
    }
  }

  // What the reader does at one time, 0: nothing. True if it races.
  bool Compare(const PathUse& writing, const PathUse& reading, uint64_t at) {
    using Kind = Race::Kind;
    const UseTimes& w = *writing.times;
    const UseTimes& r = *reading.times;
    const ProcessId writer = graph_.ProcessOf(writing.execution);
    const ProcessId reader = graph_.ProcessOf(reading.execution);
    const auto before_write = [&](uint64_t write) {
      return order_.Before(reader, at, writer, write);
    };
    if (reading.use->Reads() && r.first_read_ns != 0) {
      if (at < w.first_write_ns) {
        if (before_write(w.first_write_ns)) return false;
        Add(Kind::kReadBefore, writing, reading, at, w.first_write_ns);
        return true;
      }
      if (at >= w.last_write_ns ||
          (order_.Before(writer, w.first_write_ns, reader, at) &&
           before_write(w.last_write_ns))) {
        return false;
      }
      Add(Kind::kReadDuring, writing, reading, at, w.last_write_ns);
      return true;
    }
    if (at == 0 || at >= w.first_write_ns || before_write(w.first_write_ns) ||
        graph_.IsAncestor(reader, writer)) {
      return false;
    }
    Add(Kind::kProbedBefore, writing, reading, at, w.first_write_ns);
    return true;
  }

  void Add(Race::Kind kind, const PathUse& writing, const PathUse& reading,
           uint64_t from_ns, uint64_t to_ns) {
    if (races_.list.size() == limits_.races) {
      ++races_.left_out;
      return;
    }
    races_.list.push_back(
        {kind, path_, writing.execution, reading.execution, to_ns - from_ns});
  }

  const BuildGraph& graph_;
  const RaceLimits& limits_;
  const ProcessOrder order_;
  PathId path_ = PathTable::kNone;  // that is looked at
  Races races_;
};

}  // namespace

std::string_view RaceName(Race::Kind kind) {
  switch (kind) {
    case Race::Kind::kReadBefore:
      return "read-before-write";
    case Race::Kind::kReadDuring:
      return "read-during-write";
    case Race::Kind::kProbedBefore:
      return "probed-before-write";
  }
  return {};
}

std::vector<std::string> Races::Notes() const {
  std::vector<std::string> notes;
  if (crowded_files != 0) {
    notes.push_back(std::to_string(crowded_files) +
                    " files have so many users that each reader was compared "
                    "with the writers nearest in time only");
  }
  if (looked_at != 0) {
    notes.push_back(
        "jobs that nothing orders are told only if they ran at the same time, "
        "and of a process the first and the last read of a file");
  }
  if (left_out != 0) {
    notes.push_back(std::to_string(left_out) + " more races are not listed");
  }
  if (!whole_lives) {
    notes.push_back(
        "the trace has no process records: races are told of processes whose "
        "operations overlap in time, and there may be others");
  }
  return notes;
}

Races FindRaces(const BuildGraph& graph, const RaceLimits& limits) {
  return RaceFinder(graph, limits).Find();
}

}  // namespace tracefs::build

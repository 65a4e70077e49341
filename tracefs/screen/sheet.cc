#include "tracefs/screen/sheet.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>

#include "tracefs/text/flag_names.h"

namespace tracefs::screen {
namespace {

constexpr char kOther[] = "(other)";
constexpr char kNoName[] = "(not known)";
constexpr size_t kMaxDepth = 64;

std::string NumberName(uint64_t number) {
  return number == kUnknown ? kNoName : std::to_string(number);
}

// What the row of an operation is, before it has counts; false: none.
bool Describe(const ActivityKey& key, const SheetOptions& options, Row* row) {
  row->term.group = options.group;
  if (options.group == Group::kSource) {
    row->term.number = key.source;
    row->name = key.source < options.sources.size()
                    ? options.sources[key.source]
                    : std::to_string(key.source);
    return true;
  }
  if (key.other) {
    row->other = true;
    row->name = kOther;
    return true;
  }
  const auto text = [row](std::string_view value) {
    row->term.text = value;
    row->name = value.empty() ? kNoName : value;
    row->other = value.empty();
  };
  // Also of those that are not told apart any more.
  const auto place = [row, &text](std::string_view value) {
    text(value);
    if (value.empty()) row->name = kOther;
  };
  switch (options.group) {
    case Group::kOp:
      row->term.number = Index(key.op);
      row->name = OpName(key.op);
      return true;
    case Group::kProcess:
      row->term.number = key.pid;
      row->name = key.pid == kUnknown
                      ? kNoName
                      : key.comm + '[' + std::to_string(key.pid) + ']';
      return true;
    case Group::kCommand:
      text(key.comm);
      row->other = false;  // `cname = unknown`
      return true;
    case Group::kFile:
      place(key.path);
      return true;
    case Group::kDirectory:
    case Group::kTree:
      place(DirectoryOf(key));
      return true;
    case Group::kError: {
      if (key.error == 0) return false;
      row->term.number = key.error;
      const std::string_view name = ErrnoName(key.error);
      row->name = name.empty() ? std::to_string(key.error) : std::string(name);
      return true;
    }
    case Group::kUser:
      row->term.number = key.uid;
      row->name = NumberName(key.uid);
      return true;
    case Group::kSource:
      break;
  }
  return false;
}

std::string IdOf(const Row& row) {
  if (row.other) return row.name;
  return std::to_string(row.term.number) + ' ' + row.term.text;
}

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool Contains(std::string_view name, std::string_view part) {
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [](char a, char b) { return Lower(a) == Lower(b); }) !=
         name.end();
}

// Rows by their ids, in the order in which they were met.
class Rows {
 public:
  Row& At(Row&& made) {
    made.id = IdOf(made);
    const auto [at, fresh] = places_.emplace(made.id, rows_.size());
    if (fresh) rows_.push_back(std::move(made));
    return rows_[at->second];
  }
  std::vector<Row> Take() { return std::move(rows_); }

 private:
  std::vector<Row> rows_;
  std::unordered_map<std::string, size_t> places_;
};

using Before = std::function<bool(const Row&, const Row&)>;

Before Order(Column column, bool ascending) {
  return [column, ascending](const Row& a, const Row& b) {
    if (a.other != b.other) return b.other;  // last
    if (column == Column::kName && a.name != b.name) {
      return ascending ? b.name < a.name : a.name < b.name;
    }
    const uint64_t x = a.In(column);
    const uint64_t y = b.In(column);
    if (x != y) return ascending ? x < y : x > y;
    // Equals have a fixed order, so that rows do not jump.
    if (a.counts.count != b.counts.count) {
      return a.counts.count > b.counts.count;
    }
    return a.id < b.id;
  };
}

// Puts children below their parents. `parent_of`: the id of a row's parent, or
// empty. Hides what is folded.
std::vector<Row> AsTree(
    std::vector<Row> rows, const SheetOptions& options, const Before& before,
    const std::function<std::string(const Row&)>& parent_of) {
  std::map<std::string, std::vector<size_t>> children;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < rows.size(); ++i) places[rows[i].id] = i;
  std::vector<size_t> roots;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::string parent = rows[i].other ? "" : parent_of(rows[i]);
    if (parent.empty() || parent == rows[i].id || !places.contains(parent)) {
      roots.push_back(i);
    } else {
      children[parent].push_back(i);
    }
  }
  const auto sort = [&](std::vector<size_t>& list) {
    std::sort(list.begin(), list.end(),
              [&](size_t a, size_t b) { return before(rows[a], rows[b]); });
  };
  std::vector<Row> result;
  std::vector<bool> placed(rows.size());
  const std::function<void(size_t, size_t)> put = [&](size_t i, size_t depth) {
    if (placed[i]) return;  // pids that came again can make a ring
    placed[i] = true;
    auto below = children.find(rows[i].id);
    rows[i].depth = depth;
    rows[i].parent = below != children.end();
    rows[i].folded = rows[i].parent && options.folded.contains(rows[i].id);
    const bool hide = rows[i].folded || depth >= kMaxDepth;
    result.push_back(rows[i]);
    if (below == children.end()) return;
    sort(below->second);
    for (const size_t child : below->second) {
      if (hide) {
        placed[child] = true;
      } else {
        put(child, depth + 1);
      }
    }
  };
  sort(roots);
  for (const size_t root : roots) put(root, 0);
  // What hangs in a ring of parents has no root.
  for (size_t i = 0; i < rows.size(); ++i) {
    bool hidden = false;
    std::string up = rows[i].other ? "" : parent_of(rows[i]);
    for (size_t n = 0; n < kMaxDepth && !up.empty() && places.contains(up);
         ++n) {
      hidden |= options.folded.contains(up);
      up = parent_of(rows[places[up]]);
    }
    if (!hidden) put(i, 0);
  }
  return result;
}

// Whether it tells files, or places of files, apart.
bool IsOfFiles(const Term& term) {
  return term.group == Group::kFile || term.group == Group::kDirectory ||
         term.group == Group::kTree;
}

std::string_view UpOf(std::string_view directory) {
  if (directory.size() <= 1) return {};
  const size_t slash = directory.rfind('/');
  if (slash == std::string_view::npos) return {};
  return slash == 0 ? "/" : directory.substr(0, slash);
}

Row TreeRow(std::string_view directory) {
  Row row;
  row.term = {Group::kTree, 0, std::string(directory)};
  row.name = directory;
  return row;
}

std::string DirectoryId(std::string_view directory) {
  return directory.empty() ? "" : IdOf(TreeRow(directory));
}

}  // namespace

uint64_t Row::In(Column column) const {
  switch (column) {
    case Column::kCount:
      return counts.count;
    case Column::kErrors:
      return counts.errors;
    case Column::kBytes:
      return counts.bytes;
    case Column::kTime:
      return counts.time_ns;
    case Column::kMean:
      return counts.MeanNs();
    case Column::kP50:
      return counts.durations.Quantile(0.5, counts.Times());
    case Column::kP90:
      return counts.durations.Quantile(0.9, counts.Times());
    case Column::kP99:
      return counts.durations.Quantile(0.99, counts.Times());
    case Column::kMax:
      return counts.max_ns;
    case Column::kName:
      break;
  }
  return 0;
}

Sheet MakeSheet(const ActivityTable& table, const SheetOptions& options) {
  Sheet sheet;
  Rows rows;
  std::unordered_map<std::string, uint64_t> parents;  // of processes
  const bool directories = options.tree && options.group == Group::kDirectory;
  const bool processes = options.tree && options.group == Group::kProcess;
  const bool in_files = std::any_of(options.drill.terms.begin(),
                                    options.drill.terms.end(), &IsOfFiles);
  const bool by_file = in_files || IsOfFiles({options.group, 0, {}});
  const auto add = [&](const ActivityCounts& counts, ActivityCounts* sum) {
    sum->Add(counts);
    if (by_file) sum->bytes += counts.second;
  };
  for (const auto& [key, counts] : table.cells()) {
    if (!options.drill.Matches(key)) continue;
    sheet.total.Add(counts);
    if (in_files) sheet.total.bytes += counts.second;
    Row made;
    if (!Describe(key, options, &made)) continue;
    if (!directories || made.other) {
      Row& row = rows.At(std::move(made));
      add(counts, &row.counts);
      if (processes) parents[row.id] = key.ppid;
      continue;
    }
    size_t depth = 0;
    for (std::string_view at = made.name; !at.empty() && depth < kMaxDepth;
         at = UpOf(at), ++depth) {
      add(counts, &rows.At(TreeRow(at)).counts);
    }
  }
  sheet.rows = rows.Take();
  if (!options.find.empty()) {
    std::erase_if(sheet.rows, [&](const Row& row) {
      return !Contains(row.name, options.find);
    });
  }
  const Before before = Order(options.sort, options.ascending);
  if (processes) {
    sheet.rows =
        AsTree(std::move(sheet.rows), options, before, [&](const Row& row) {
          const auto found = parents.find(row.id);
          if (found == parents.end() || found->second == kUnknown) {
            return std::string();
          }
          Row parent;
          parent.term = {Group::kProcess, found->second, {}};
          return IdOf(parent);
        });
  } else if (directories) {
    sheet.rows =
        AsTree(std::move(sheet.rows), options, before,
               [](const Row& row) { return DirectoryId(UpOf(row.term.text)); });
  } else if (options.sort == Column::kP50 || options.sort == Column::kP90 ||
             options.sort == Column::kP99) {
    // What takes time to find out is found out once.
    std::vector<std::pair<uint64_t, size_t>> keys;
    for (size_t i = 0; i < sheet.rows.size(); ++i) {
      keys.emplace_back(sheet.rows[i].In(options.sort), i);
    }
    std::sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
      const Row& x = sheet.rows[a.second];
      const Row& y = sheet.rows[b.second];
      if (x.other != y.other) return y.other;
      if (a.first != b.first) {
        return options.ascending ? a.first < b.first : a.first > b.first;
      }
      return x.id < y.id;
    });
    std::vector<Row> sorted;
    sorted.reserve(keys.size());
    for (const auto& [value, i] : keys) {
      sorted.push_back(std::move(sheet.rows[i]));
    }
    sheet.rows = std::move(sorted);
  } else {
    std::sort(sheet.rows.begin(), sheet.rows.end(), before);
  }
  return sheet;
}

}  // namespace tracefs::screen

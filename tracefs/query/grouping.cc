#include "tracefs/query/grouping.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "tracefs/base/bytes.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/query/analysis.h"
#include "tracefs/query/group_rows.h"
#include "tracefs/reader/tracefs_reader.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::query {
namespace {

using From = GroupKey::From;
using reader::Shape;

constexpr size_t kBatchRows = 8192;
constexpr size_t kRowsAtOnce = size_t{1} << 16;  // of FinishExact
constexpr size_t kNoPlace = SIZE_MAX;
constexpr size_t kNoColumn = GroupColumns::kNone;
constexpr size_t kFetched = 32;  // keys that are fetched at the same time

size_t TextCount(const reader::Column& column) {
  return column.offsets.empty() ? 0 : column.offsets.size() - 1;
}
std::string_view TextAt(const reader::Column& column, size_t i) {
  const auto begin = static_cast<size_t>(column.offsets[i]);
  return std::string_view(column.bytes)
      .substr(begin, static_cast<size_t>(column.offsets[i + 1]) - begin);
}

const reader::FieldRow* FieldRowOf(Field field) {
  for (const reader::FieldRow& row : reader::FieldRows()) {
    if (row.field == field) return &row;
  }
  return nullptr;
}

bool HasKey(const GroupSpec& spec, From from) {
  return std::ranges::any_of(
      spec.keys, [from](const GroupKey& key) { return key.from == from; });
}

// A pid may be given again: only who follows processes in order of time tells
// one from the other.
bool NumbersProcesses(const GroupSpec& spec) {
  return NeedsOf(spec.values).processes || HasKey(spec, From::kProcess);
}

}  // namespace

bool GroupSpec::follows_files() const { return NeedsOf(values).files; }

bool GroupSpec::needs_records() const {
  return follows_files() || NumbersProcesses(*this) ||
         HasKey(*this, From::kTree);
}

Grouping::Grouping(GroupSpec spec)
    : spec_(std::move(spec)),
      needs_(NeedsOf(spec_.values)),
      store_(std::make_shared<GroupStore>(spec_.memory_bytes, needs_.any())),
      numbers_processes_(NumbersProcesses(spec_)) {
  if (spec_.exact) {
    store_->OnFull([this](const std::deque<GroupStore::Entry>& entries) {
      for (const GroupStore::Entry& entry : entries) all_.Add(entry.tally);
      (void)spill_.Add(entries);  // keeps its error
    });
  }
  if (spec_.every_ns != 0) {
    spec_.keys.insert(spec_.keys.begin(), PeriodKey(spec_.every_ns));
  }
  auto columns = std::make_shared<std::vector<reader::ColumnSpec>>();
  const auto add = [&columns](const reader::FieldRow* field) {
    for (size_t i = 0; i < columns->size(); ++i) {
      if ((*columns)[i].field == field) return i;
    }
    columns->push_back({.field = field,
                        .raw = field->shape == Shape::kText,
                        .name = field->name});
    return columns->size() - 1;
  };
  sums_.op = add(reader::FindField(TRACEFS_FIELD_OP));
  sums_.latency = add(FieldRowOf(Field::kLatency));
  sums_.result = add(FieldRowOf(Field::kResult));
  sums_.error = add(FieldRowOf(Field::kErrno));
  sums_.before = add(reader::FindField(TRACEFS_FIELD_BEFORE));
  with_before_ = std::ranges::count(spec_.values, GroupValue::kBefore) != 0;
  const bool times = std::ranges::any_of(spec_.values, [](GroupValue value) {
    return value == GroupValue::kFirst || value == GroupValue::kLast;
  });
  if (times) sums_.time = add(reader::FindField(TRACEFS_FIELD_TIME));
  by_file_ = TellFilesApart(spec_.keys);
  for (const GroupKey& key : spec_.keys) {
    key_columns_.push_back(add(key.field));
    if (!by_file_) continue;
    const std::optional<Field> second = FieldOfSecond(key);
    second_columns_.push_back(!second ? key_columns_.back()
                              : *second == Field::kData
                                  ? kNoColumn
                                  : add(FieldRowOf(*second)));
  }
  columns_ = std::move(columns);
}

void Grouping::CodesOf(const reader::Batch& batch, size_t k, size_t at,
                       Part* part) {
  const GroupKey& key = spec_.keys[k];
  const size_t rows = batch.rows();
  part->codes.assign(rows, Part::kAbsent);
  if (at == kNoColumn) {
    if (key.is_number()) part->numbers = std::make_unique<FlatIndex>();
    return;
  }
  const reader::Column& column = batch.column(at);
  const Numbers values(batch, at);
  if (key.from == From::kTree) {
    for (size_t i = 0; i < tree_texts_.size(); ++i) {
      part->texts.push_back(tree_texts_.At(i));
    }
    part->codes = trees_;
    return;
  }
  if (key.from == From::kHost) {
    part->texts.assign(hosts_.begin(), hosts_.end());
    for (size_t row = 0; row < rows; ++row) {
      const uint64_t trace = values.At(row);
      if (trace < hosts_.size() && !hosts_[trace].empty()) {
        part->codes[row] = static_cast<uint32_t>(trace);
      }
    }
    return;
  }
  if (key.from == From::kFlagNames) {
    NameFlags(batch, k, part);
    return;
  }
  if (key.is_number()) {
    part->numbers = std::make_unique<FlatIndex>();
    for (size_t row = 0; row < rows; ++row) {
      if (!values.Has(row)) continue;
      uint64_t value = values.At(row);
      // What is below zero has no power of two, nor a row of a histogram.
      const bool below_zero =
          key.field->shape == Shape::kSigned && static_cast<int64_t>(value) < 0;
      if (below_zero && key.from != From::kField) continue;
      if (key.from == From::kTime) value -= value % key.period_ns;
      if (key.from == From::kLog2) value = std::bit_floor(value);
      if (key.from == From::kLinear) value -= value % key.width;
      if (key.from == From::kAlign) value &= -value;
      part->codes[row] = part->numbers->Number(value);
    }
    return;
  }
  if (key.from == From::kField) {
    for (size_t i = 0; i < TextCount(column); ++i) {
      part->texts.push_back(TextAt(column, i));
    }
    for (size_t row = 0; row < rows; ++row) {
      if (!values.Has(row)) continue;
      const uint64_t code = values.At(row);
      if (!part->texts[code].empty()) {
        part->codes[row] = static_cast<uint32_t>(code);
      }
    }
    return;
  }
  // Texts are worked out once a batch for each that is there.
  TextDictionary derived;
  std::vector<uint32_t> of_code;
  for (size_t i = 0; i < TextCount(column); ++i) {
    const std::string_view text = DerivedText(key, TextAt(column, i));
    of_code.push_back(text.empty() ? Part::kAbsent : derived.Add(text));
  }
  part->made.reserve(derived.size());
  for (size_t i = 0; i < derived.size(); ++i) {
    part->made.emplace_back(derived.At(i));
  }
  for (size_t row = 0; row < rows; ++row) {
    if (values.Has(row)) part->codes[row] = of_code[values.At(row)];
  }
  if (key.from == From::kProcess) NameProcesses(part);
  part->texts.assign(part->made.begin(), part->made.end());
}

// From the names of commands to "cc1 1234"; "cc1 1234 (2)" of the second
// process that had the pid.
void Grouping::NameProcesses(Part* part) const {
  FlatIndex processes, pairs;
  std::vector<std::string> names;
  for (size_t row = 0; row < part->codes.size(); ++row) {
    const bool is_known = row < callers_.size() &&
                          callers_[row].number != ProcessNumbers::kUnknown;
    if (!is_known) {
      part->codes[row] = Part::kAbsent;
      continue;
    }
    const ProcessNumbers::Found& caller = callers_[row];
    const uint32_t name = part->codes[row];
    const uint64_t process = processes.Number(caller.number);
    const uint32_t code = pairs.Number(process << 32 | name);
    if (code == names.size()) {
      names.push_back((name == Part::kAbsent ? "?" : part->made[name]) + " " +
                      std::to_string(caller.pid));
      if (caller.earlier != 0) {
        names.back() += " (" + std::to_string(caller.earlier + 1) + ")";
      }
    }
    part->codes[row] = code;
  }
  part->made = std::move(names);
}

// What a flag means depends on the operation.
void Grouping::NameFlags(const reader::Batch& batch, size_t k, Part* part) {
  const reader::Column& ops = batch.column(sums_.op);
  std::vector<std::optional<Op>> known;
  for (size_t i = 0; i < TextCount(ops); ++i) {
    known.push_back(OpFromName(TextAt(ops, i)));
  }
  const Numbers op(batch, sums_.op);
  const Numbers flags(batch, key_columns_[k]);
  FlatIndex pairs;
  for (size_t row = 0; row < batch.rows(); ++row) {
    if (!flags.Has(row) || !known[op.At(row)]) continue;
    const auto value = static_cast<uint32_t>(flags.At(row));
    const uint32_t code = pairs.Number(uint64_t{value} << 32 | op.At(row));
    if (code == part->made.size()) {
      part->made.push_back(FlagsText(*known[op.At(row)], value));
    }
    part->codes[row] = code;
  }
  part->texts.assign(part->made.begin(), part->made.end());
}

void Grouping::AppendKeyPart(const Part& part, const GroupKey& key,
                             uint32_t code, std::string* text) const {
  // A mark, then the value; texts with their size, so that none runs into the
  // next.
  *text += code == Part::kAbsent ? '\0' : '\1';
  if (code == Part::kAbsent) return;
  std::array<std::byte, 8> bytes;
  if (key.is_number()) {
    StoreLe<uint64_t>(bytes.data(), part.numbers->At(code));
  } else {
    StoreLe<uint64_t>(bytes.data(), part.texts[code].size());
  }
  text->append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!key.is_number()) *text += part.texts[code];
}

// The keys of these rows that are not known yet are made, and on their way when
// they are asked for.
void Grouping::FetchKeys(const std::vector<Part>& parts,
                         const std::vector<uint32_t>& groups,
                         const std::vector<size_t>& places, size_t from,
                         size_t to) {
  key_text_.clear();
  fetched_.clear();
  for (size_t row = from; row < to; ++row) {
    FetchedKey& key = fetched_.emplace_back();
    if (places[groups[row]] != kNoPlace) continue;
    key.begin = key_text_.size();
    AppendKey(parts, row, &key_text_);
    key.size = key_text_.size() - key.begin;
    key.hash = store_->Hash(std::string_view(key_text_).substr(key.begin));
    key.made = true;
    store_->FetchSlot(key.hash);
  }
  for (const FetchedKey& key : fetched_) {
    if (key.made) store_->FetchEntry(key.hash);
  }
}

void Grouping::AppendKey(const std::vector<Part>& parts, size_t row,
                         std::string* text) const {
  for (size_t k = 0; k < parts.size(); ++k) {
    AppendKeyPart(parts[k], spec_.keys[k], parts[k].codes[row], text);
  }
}

size_t Grouping::PlaceOf(const std::vector<Part>& parts, size_t row) {
  const size_t at = row % kFetched;
  if (at < fetched_.size() && fetched_[at].made) {
    const FetchedKey& key = fetched_[at];
    return store_->Find(std::string_view(key_text_).substr(key.begin, key.size),
                        key.hash);
  }
  fetched_.clear();
  key_text_.clear();
  AppendKey(parts, row, &key_text_);
  return store_->Find(key_text_);
}

// One number for each combination of codes; how many there are.
size_t Grouping::NumberGroups(const std::vector<Part>& parts,
                              std::vector<uint32_t>* groups) {
  const size_t rows = groups->size();
  if (parts.empty()) return 1;
  if (parts.size() == 1) {
    size_t most = 0;
    for (size_t row = 0; row < rows; ++row) {
      const uint32_t code = parts[0].codes[row];
      (*groups)[row] = code == Part::kAbsent ? 0 : code + 1;
      most = std::max<size_t>(most, (*groups)[row]);
    }
    return most + 1;
  }
  *groups = parts[0].codes;
  size_t count = 0;
  for (size_t k = 1; k < parts.size(); ++k) {
    FlatIndex pairs;
    for (size_t row = 0; row < rows; ++row) {
      (*groups)[row] =
          pairs.Number(uint64_t{(*groups)[row]} << 32 | parts[k].codes[row]);
    }
    count = pairs.size();
  }
  return count;
}

// The operation counts with its first file; what it did with the second file
// belongs to the group of that one.
void Grouping::AddToBoth(const BatchSums& sums, const std::vector<Part>& parts,
                         const std::vector<Part>& second_parts, size_t row) {
  std::string first;
  std::string second;
  AppendKey(parts, row, &first);
  AppendKey(second_parts, row, &second);
  bool known = false;
  for (size_t k = 0; k < spec_.keys.size(); ++k) {
    known |= FieldOfSecond(spec_.keys[k]) &&
             second_parts[k].codes[row] != Part::kAbsent;
  }
  if (!known) ++second_unknown_;
  sums.AddTo(row, GroupEnds::kFirst, &store_->At(store_->Find(first)));
  store_->CheckRoom();
  sums.AddTo(row, GroupEnds::kSecond, &store_->At(store_->Find(second)));
  store_->CheckRoom();
}

void Grouping::Add(const reader::Batch& batch) {
  const size_t rows = batch.rows();
  std::vector<Part> parts(spec_.keys.size());
  for (size_t k = 0; k < parts.size(); ++k) {
    CodesOf(batch, k, key_columns_[k], &parts[k]);
  }
  std::vector<uint32_t> groups(rows, 0);
  const size_t group_count = NumberGroups(parts, &groups);
  const BatchSums sums(batch, sums_, needs_, callers_, files_);
  std::vector<Part> second_parts;  // made when they are needed

  std::vector<size_t> places(group_count, kNoPlace);
  uint64_t generation = store_->generation();
  for (size_t row = 0; row < rows; ++row) {
    if (row % kFetched == 0) {
      fetched_.clear();
      if (store_->is_far()) {
        FetchKeys(parts, groups, places, row, std::min(rows, row + kFetched));
      }
    }
    const bool before = sums.IsBefore(row);
    if (before && !with_before_) continue;
    if (by_file_ && !before && sums.HasSecondFile(row)) {
      if (second_parts.empty()) {
        second_parts.resize(parts.size());
        for (size_t k = 0; k < parts.size(); ++k) {
          CodesOf(batch, k, second_columns_[k], &second_parts[k]);
        }
      }
      AddToBoth(sums, parts, second_parts, row);
      continue;
    }
    if (generation != store_->generation()) {
      places.assign(group_count, kNoPlace);
      generation = store_->generation();
    }
    size_t& place = places[groups[row]];
    if (place == kNoPlace) {
      const size_t found = PlaceOf(parts, row);
      if (generation != store_->generation()) {
        places.assign(group_count, kNoPlace);
        generation = store_->generation();
      }
      place = found;
    }
    sums.AddTo(row, GroupEnds::kBoth, &store_->At(place));
    store_->CheckRoom();
  }
}

void Grouping::AddRecord(const format::Record& record, size_t trace) {
  if (batch_ == nullptr) {
    batch_ = std::make_unique<reader::Batch>(columns_);
    if (needs_.files) files_.reserve(kBatchRows);
    if (numbers_processes_) callers_.reserve(kBatchRows);
  }
  batch_->Add(record, trace);
  if (HasKey(spec_, From::kTree)) {
    struct Line {
      std::vector<std::string> names;
    } line;
    line.names.emplace_back(record.Text(Field::kComm));
    const auto visit = [](void* context, uint32_t pid, std::string_view comm) {
      auto& names = static_cast<Line*>(context)->names;
      names.push_back(comm.empty() ? std::to_string(pid) : std::string(comm));
      return true;
    };
    Event copy = record.event;
    if (copy.resolver != nullptr) {
      copy.resolver->ForEachAncestor(copy, &line, visit);
    }
    std::string text;
    for (auto name = line.names.rbegin(); name != line.names.rend(); ++name) {
      text += (text.empty() ? "" : ";") + *name;
    }
    trees_.push_back(text.empty() ? Part::kAbsent : tree_texts_.Add(text));
  }
  if (needs_.files) files_.push_back(file_numbers_.Of(record));
  if (numbers_processes_) callers_.push_back(processes_.Of(record));
  if (batch_->rows() >= kBatchRows || batch_->full()) Flush();
}

void Grouping::Flush() {
  if (batch_ == nullptr) return;
  batch_->Finish({});
  if (batch_->rows() != 0) Add(*batch_);
  batch_->Clear();
  trees_.clear();
  callers_.clear();
  files_.clear();
  tree_texts_ = TextDictionary();
}

Table Grouping::BeginTable() const {
  Table table;
  for (const GroupKey& key : spec_.keys) {
    table.columns.push_back({key.name, key.unit()});
  }
  // A table has a first column to say `other` in.
  if (spec_.keys.empty()) table.columns.push_back({"all"});
  for (const GroupValue value : spec_.values) {
    table.columns.push_back(ColumnOf(value));
  }
  if (!store_->exact()) table.columns.push_back({"missed", Unit::kCount});
  return table;
}

Table Grouping::FinishLazily() {
  Flush();
  Table table = BeginTable();
  const bool exact = store_->exact();
  all_ = counted_other_.tally;
  all_.Add(store_->other());
  for (const GroupStore::Entry& entry : store_->entries()) {
    all_.Add(entry.tally);
  }
  table.source = std::make_shared<GroupRows>(store_, spec_, all_);
  if (!exact || counted_other_.any) {
    counted_other_.tally.Add(store_->other());
    counted_other_.details.Add(store_->other_details());
    Row other(table.columns.size());
    other[0] = Value::Text("other");
    for (size_t i = 0; i < spec_.values.size(); ++i) {
      other[std::max<size_t>(spec_.keys.size(), 1) + i] = ValueOf(
          spec_.values[i], counted_other_.tally, &counted_other_.details, all_);
    }
    table.other = std::move(other);
  }
  if (second_unknown_ != 0) {
    table.notes.push_back(
        std::to_string(second_unknown_) +
        " copies do not tell which file they wrote, as in traces of older "
        "versions: what they wrote is in the row without one");
  }
  if (exact) return table;
  table.notes.push_back(
      "there was no room for all keys: `other` has what those of " +
      std::to_string(store_->other_keys()) +
      " had that went, and at most `missed` operations of each that is shown; "
      "--exact counts all of them");
  return table;
}

Table Grouping::Finish() {
  Table table = FinishLazily();
  table.rows.resize(table.source->size());
  for (size_t i = 0; i < table.rows.size(); ++i) {
    table.source->Make(i, &table.rows[i]);
  }
  table.source = nullptr;
  return table;
}

Result<Table> Grouping::FinishExact(const Arrangement& cut) {
  Flush();
  if (!spill_.any()) {
    Table table = FinishLazily();
    if (Status s = Arrange(cut, &table); !s.ok()) return s;
    return table;
  }
  for (const GroupStore::Entry& entry : store_->entries()) {
    all_.Add(entry.tally);
  }
  if (Status s = spill_.Add(store_->entries()); !s.ok()) return s;
  store_->Clear();
  Table table = BeginTable();
  const GroupRows rows(store_, spec_, all_);
  // Sorting many at a time, each is sorted but few times.
  const size_t most = std::max(4 * cut.top, kRowsAtOnce);
  size_t keys = 0;
  Status arranged;
  const Status merged =
      spill_.Merge(spec_.memory_bytes, [&](GroupStore::Entry& entry) {
        ++keys;
        rows.MakeOf(entry, &table.rows.emplace_back());
        if (cut.top == 0 || table.rows.size() < most || !arranged.ok()) return;
        arranged = Arrange(cut, &table);
      });
  if (!merged.ok()) return merged;
  if (arranged.ok()) arranged = Arrange(cut, &table);
  if (!arranged.ok()) return arranged;
  if (table.other) {
    (*table.other)[0] =
        Value::Text("other(" + std::to_string(keys - table.rows.size()) + ")");
  }
  return table;
}

}  // namespace tracefs::query

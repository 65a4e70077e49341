#include "tracefs/query/group_counted.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tracefs/base/join.h"
#include "tracefs/base/units.h"
#include "tracefs/format/constants.h"
#include "tracefs/reader/fields.h"
#include "tracefs/reader/tracefs_reader.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::query {
namespace {

using From = GroupKey::From;

constexpr auto kKeyOp = static_cast<uint16_t>(format::ArgId::kKeyOp);
constexpr auto kDirectory = static_cast<uint16_t>(format::ArgId::kDirectory);

// The argument of an AGGREGATE message that has the key; 0: none does.
uint16_t ArgumentOf(const GroupKey& key) {
  if (key.from == From::kDir) return kDirectory;
  if (key.from == From::kExt) return Info(Field::kExt).arg_id;
  if (key.from == From::kName) return Info(Field::kName).arg_id;
  if (key.from != From::kField) return 0;
  if (key.field->id == TRACEFS_FIELD_OP) return kKeyOp;
  return key.field->field ? Info(*key.field->field).arg_id : 0;
}

bool IsOfFiles(uint16_t argument) {
  return argument == kDirectory || argument == Info(Field::kExt).arg_id ||
         argument == Info(Field::kName).arg_id ||
         argument == Info(Field::kPath).arg_id ||
         argument == Info(Field::kInode).arg_id;
}

// What of the bytes of a record was read and what written, as far as its
// operation tells; the rest is either.
void SetWays(const format::AggregateRecord& record, bool both_files,
             bool by_file, Tally* tally) {
  const auto op =
      std::ranges::find(record.key, kKeyOp, &format::AggregateKeyPart::arg_id);
  const std::optional<Op> known =
      op == record.key.end() ? std::nullopt : OpFromNumber(op->number);
  if (!known) {
    tally->either = tally->bytes;
    return;
  }
  const bool parted = HasTwoFiles(*known) && both_files;
  if (parted && by_file) {
    // A file may be read by some copies, and written by others.
    (record.count == 0 ? tally->written : tally->either) = tally->bytes;
    return;
  }
  if (parted) {
    // Each byte is told twice, of one file and of the other.
    tally->half_bytes = std::exchange(tally->bytes, 0);
    tally->half_sizes = std::exchange(tally->sizes, 0);
    return;
  }
  if (tally::Reads(*known)) tally->read = tally->bytes;
  if (tally::Writes(*known)) tally->written = tally->bytes;
}

// Whether any of what was counted may have moved bytes.
bool MayMove(const format::AggregateRecord& record) {
  const auto op =
      std::ranges::find(record.key, kKeyOp, &format::AggregateKeyPart::arg_id);
  const std::optional<Op> known =
      op == record.key.end() ? std::nullopt : OpFromNumber(op->number);
  return !known || tally::Transfers(*known);
}

}  // namespace

Tally TallyOf(const format::AggregateRecord& record, bool both_files,
              bool by_file) {
  Tally tally{format::SumsOf(record)};
  if (record.size.present) {
    tally.sizes = record.size.Count();
    tally.size_max = record.size.max;
  }
  if (!record.bytes && MayMove(record)) tally.unmeasured = record.count;
  SetWays(record, both_files, by_file, &tally);
  return tally;
}

bool CopiesCountForBothFiles(const format::TraceHeader& header) {
  return header.Get("aggregate.copies") == "both files";
}

bool IsAboutFiles(const format::AggregateRecord& record) {
  return std::ranges::any_of(record.key, &IsOfFiles,
                             &format::AggregateKeyPart::arg_id);
}

void CountedChoice::Take(size_t trace, const format::AggregateRecord& record) {
  const Id id{trace, record.tracer_id, record.aggregate};
  if (drivers_.size() >= kMost && !drivers_.contains(id)) {
    too_many_ = true;
    return;
  }
  Driver& driver = drivers_[id];
  driver.has_total |= record.total;
  if (record.other) driver.other += record.count;
  for (const format::AggregateKeyPart& part : record.key) {
    driver.keys.insert(part.arg_id);
  }
}

void CountedChoice::TakeHeader(size_t trace,
                               const format::TraceHeader& header) {
  if (CopiesCountForBothFiles(header)) both_files_.insert(trace);
  for (auto& [id, driver] : drivers_) {
    if (std::get<0>(id) != trace) continue;
    const std::string_view keys =
        header.Get("aggregate." + std::to_string(std::get<2>(id)));
    constexpr std::string_view kBegin = "dir(";
    const size_t at = keys.find(kBegin);
    if (at == std::string_view::npos) continue;
    std::string_view depth = keys.substr(at + kBegin.size());
    depth = depth.substr(0, depth.find(')'));
    driver.depth =
        static_cast<uint32_t>(ParseUnsigned(depth).value_or(0) & 0xff);
  }
}

bool CountedChoice::Driver::Has(const GroupKey& key) const {
  if (!keys.contains(ArgumentOf(key))) return false;
  // Of the first parts of directories no more can be told.
  return key.from != From::kDir || depth == 0 ||
         (key.depth != 0 && key.depth <= depth);
}

Status CountedChoice::Choose(const GroupSpec& spec) {
  if (too_many_) {
    return Status::Invalid("more than " + std::to_string(kMost) +
                           " aggregate drivers have counted; ask about fewer "
                           "traces at a time");
  }
  std::map<std::pair<size_t, uint32_t>, Driver*> best;
  std::string known;
  for (auto& [id, driver] : drivers_) {
    Driver*& found = best[{std::get<0>(id), std::get<1>(id)}];
    const bool has_all = std::ranges::all_of(
        spec.keys, [&d = driver](const auto& key) { return d.Has(key); });
    if (!has_all) {
      std::string words;
      for (const uint16_t key : driver.keys) {
        AppendWord(format::AggregateKeyLabel(key), ",", &words);
        if (key == kDirectory && driver.depth != 0) {
          words += "(" + std::to_string(driver.depth) + ")";
        }
      }
      known += (known.empty() ? "" : ", and by ") +
               (words.empty() ? "nothing" : words);
      continue;
    }
    // The one that is about files only if that is asked for, then the one that
    // had no room for the fewest, then the one with fewest keys.
    const bool by_file = TellFilesApart(spec.keys);
    const auto rank = [by_file](const Driver& d) {
      const bool needless = !by_file && std::ranges::any_of(d.keys, &IsOfFiles);
      return std::tuple(needless, d.other, d.keys.size());
    };
    if (found == nullptr || rank(driver) < rank(*found)) found = &driver;
  }
  for (const auto& [tracer, driver] : best) {
    if (driver != nullptr) {
      driver->chosen = true;
      continue;
    }
    const std::string wanted = JoinWords(spec.keys, ",", &GroupKey::name);
    return Status::Invalid(
        "the trace has no operations, but what was counted by " + known +
        ": it cannot be grouped by " + wanted);
  }
  return {};
}

bool CountedChoice::Wants(size_t trace,
                          const format::AggregateRecord& record) const {
  const auto found = drivers_.find({trace, record.tracer_id, record.aggregate});
  if (found == drivers_.end() || !found->second.chosen) return false;
  // The total has what the periods told before.
  return record.total == found->second.has_total;
}

bool CountedChoice::CountsBothFiles(
    size_t trace, const format::AggregateRecord& record) const {
  const auto found = drivers_.find({trace, record.tracer_id, record.aggregate});
  return both_files_.contains(trace) && found != drivers_.end() &&
         std::ranges::any_of(found->second.keys, &IsOfFiles);
}

Status Grouping::AddCounted(const format::AggregateRecord& record,
                            bool both_files) {
  key_text_.clear();
  if (record.other && spec_.exact) {
    return Status::Invalid(
        "the trace has no operations, but what was counted with room for the "
        "largest keys only: --exact cannot be had of it");
  }
  for (const GroupKey& key : spec_.keys) {
    if (record.other) break;
    const auto found = std::ranges::find(record.key, ArgumentOf(key),
                                         &format::AggregateKeyPart::arg_id);
    // What the operations do not have is absent.
    const bool known = found != record.key.end();
    Part one;
    std::string name;
    if (key.is_number()) {
      one.numbers = std::make_unique<FlatIndex>();
      if (known) (void)one.numbers->Number(found->number);
    } else if (known) {
      name = found->text;
      if (key.field->shape == reader::Shape::kName) {
        name = reader::NameOf(*key.field, found->number);
        if (found->text.empty() && name.empty()) {
          name = std::to_string(found->number);
        }
      } else if (key.from == From::kDir && key.depth != 0) {
        name = DirectoryStart(name, key.depth);
      }
      one.texts.push_back(name);
    }
    const bool absent = !known || (!key.is_number() && name.empty());
    AppendKeyPart(one, key, absent ? Part::kAbsent : 0, &key_text_);
  }
  Tally* tally = &counted_other_.tally;
  TallyDetails* details = &counted_other_.details;
  if (record.other) {
    counted_other_.any = true;
  } else {
    GroupStore::Entry& entry = store_->At(store_->Find(key_text_));
    tally = &entry.tally;
    details = entry.details.get();
  }
  tally->Add(TallyOf(record, both_files, by_file_));
  if (details == nullptr) return {};
  for (const auto& bucket : record.latency.buckets) {
    details->latency.AddBucket(bucket.bucket, bucket.count);
  }
  for (const auto& bucket : record.size.buckets) {
    details->size.AddBucket(bucket.bucket, bucket.count);
  }
  return {};
}

}  // namespace tracefs::query

// Changes of mode and owner. What was there before is known where an earlier
// operation told it.
#include <linux/fuse.h>

#include <unordered_map>

#include "tracefs/format/block_decoder.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/distinct_count.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostFiles = size_t{1} << 18;
constexpr size_t kMostPermissions = size_t{1} << 17;
constexpr uint64_t kPermissionBits = 07777;
constexpr uint64_t kSetIdBits = 06000;

std::string Octal(uint64_t number) {
  std::string text;
  for (number &= kPermissionBits; number != 0; number /= 8) {
    text.insert(text.begin(), static_cast<char>('0' + number % 8));
  }
  return "0" + text;
}

class Permissions final : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    TakeAny(record, /*counts=*/true);
  }
  bool follows_files() const override { return true; }
  void Pass(const format::Record& record, size_t /*trace*/) override {
    TakeAny(record, /*counts=*/false);
  }

  std::vector<Table> Finish() override {
    Table table;
    table.columns = {{"time", Unit::kTime},
                     {"what"},
                     {"old"},
                     {"new"},
                     {"set_id"},
                     {"cname"},
                     {"cpid", Unit::kNumber},
                     {"cuid", Unit::kNumber},
                     {"errno"},
                     {"path"}};
    table.rows = std::move(rows_);
    if (left_out_ != 0) {
      table.notes.push_back("and " + std::to_string(left_out_) +
                            " more changes");
    }
    if (not_followed_ != 0) {
      table.notes.push_back("what was before is not known of files beyond " +
                            std::to_string(kMostFiles));
    }
    return {table};
  }

 private:
  struct File {
    uint64_t mode = 0;
    uint64_t uid = 0;
    uint64_t gid = 0;
    bool owned = false;
  };

  void TakeAny(const format::Record& record, bool counts) {
    if (!HasRun(record)) return;
    const Event& event = record.event;
    const uint64_t inode = event.GetOr0(Field::kInode);
    const uint64_t key =
        MixedHash(inode + (uint64_t{OriginOf(record).mount} << 56));
    if (event.op == Op::setattr_ && counts)
      TakeChange(record, Known(inode, key));
    if (inode == 0) return;
    const bool gone = !Failed(event) &&
                      (event.op == Op::unlink_ || event.op == Op::rmdir_) &&
                      event.GetOr0(Field::kNlink) <= 1;
    if (gone) {
      files_.erase(key);
      return;
    }
    if (event.Has(Field::kMode) && !Failed(event)) Learn(event, key);
  }

  const File* Known(uint64_t inode, uint64_t key) const {
    const auto at = inode == 0 ? files_.end() : files_.find(key);
    return at == files_.end() ? nullptr : &at->second;
  }

  void Learn(const Event& event, uint64_t key) {
    if (files_.size() >= kMostFiles && !files_.contains(key)) {
      ++not_followed_;
      return;
    }
    File& file = files_[key];
    file.mode = event.Get(Field::kMode);
    file.owned = event.Has(Field::kFuid) && event.Has(Field::kFgid);
    file.uid = event.GetOr0(Field::kFuid);
    file.gid = event.GetOr0(Field::kFgid);
  }

  void TakeChange(const format::Record& record, const File* before) {
    const Event& event = record.event;
    const uint64_t valid = event.GetOr0(Field::kValid);
    const bool owned = before != nullptr && before->owned;
    if ((valid & FATTR_MODE) != 0 && event.Has(Field::kArgMode)) {
      const uint64_t mode = event.Get(Field::kArgMode);
      Add(record, "mode",
          before == nullptr ? Value() : Value::Text(Octal(before->mode)),
          Value::Text(Octal(mode)), (mode & kSetIdBits) != 0);
    }
    if ((valid & FATTR_UID) != 0 && event.Has(Field::kNewUid)) {
      Add(record, "user",
          owned ? Value::Text(std::to_string(before->uid)) : Value(),
          Value::Text(std::to_string(event.Get(Field::kNewUid))), false);
    }
    if ((valid & FATTR_GID) != 0 && event.Has(Field::kNewGid)) {
      Add(record, "group",
          owned ? Value::Text(std::to_string(before->gid)) : Value(),
          Value::Text(std::to_string(event.Get(Field::kNewGid))), false);
    }
  }

  void Add(const format::Record& record, std::string_view what, Value before,
           Value after, bool set_id) {
    if (rows_.size() == kMostPermissions) {
      ++left_out_;
      return;
    }
    const Event& event = record.event;
    PathBuffer buffer;
    const std::string_view path = format::PathOf(record, buffer);
    const auto number = [&event](Field field) {
      return event.Has(field) ? Value::Number(event.Get(field)) : Value();
    };
    rows_.push_back(
        {record.time_resolution_ns == 0 ? Value()
                                        : Value::Number(record.real_ns),
         Value::Text(what), std::move(before), std::move(after),
         set_id ? Value::Text("yes") : Value(),
         Value::Text(record.Text(Field::kComm)), number(Field::kPid),
         number(Field::kUid),
         Failed(event) ? Value::Text(ErrnoName(event.Get(Field::kErrno)))
                       : Value(),
         path.empty() ? Value() : Value::Text(path)});
  }

  std::unordered_map<uint64_t, File> files_;
  std::vector<Row> rows_;
  uint64_t left_out_ = 0;
  uint64_t not_followed_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakePermissions(const AnalysisOptions& /*options*/) {
  return std::make_unique<Permissions>();
}

}  // namespace tracefs::query

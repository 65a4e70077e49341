// Who did what to one file: by its path, and by its inode once that is known,
// so that its history goes on when it is renamed.
#include <linux/fs.h>

#include <algorithm>
#include <map>
#include <set>

#include "tracefs/build/compilation.h"
#include "tracefs/export/flag_names.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/query/analyses.h"

namespace tracefs::query {
namespace {

constexpr size_t kMostProcesses = size_t{1} << 16;
constexpr size_t kMostSteps = 10000;

// What changes a file, or its name.
bool Changes(const Event& event) {
  switch (event.op) {
    case Op::create_:
    case Op::mknod_:
    case Op::tmpfile_:
    case Op::symlink_:
    case Op::mkdir_:
    case Op::link_:
    case Op::rename_:
    case Op::unlink_:
    case Op::rmdir_:
    case Op::setattr_:
    case Op::setxattr_:
    case Op::removexattr_:
    case Op::fallocate_:
      return true;
    default:
      return TruncatesByOpening(event);
  }
}

class Who final : public Analysis {
 public:
  explicit Who(std::string path) : path_(std::move(path)) {}

  void Take(const format::Record& record, size_t /*trace*/) override {
    if (!HasRun(record)) return;
    const Event& event = record.event;
    PathBuffer buffer, buffer2;
    const std::string_view path = format::PathOf(record, buffer);
    const std::string_view path2 = format::NewPathOf(record, buffer2);
    const uint64_t inode = NumberOr0(event, Field::kInode);
    // The second path of a copy is no other name of the first file.
    const bool two_files = HasTwoFiles(event.op);
    if (!Failed(event)) TakeReuse(event, inode, path);
    const bool first =
        Follow(event, inode, path == path_ || (!two_files && path2 == path_));
    const bool second =
        two_files &&
        Follow(event, NumberOr0(event, Field::kInodeOut), path2 == path_);
    if (!first && !second) return;
    Count(record, first, second);
    if (!Failed(event) && !two_files) TakeNames(event, inode, path, path2);
    if (!Changes(event)) return;
    if (steps_.size() == kMostSteps) {
      ++steps_left_out_;
      return;
    }
    steps_.push_back(
        {Value::Number(record.real_ns), Value::Text(OpName(event.op)),
         Value::Text(record.Text(Field::kComm)),
         Value::Number(NumberOr0(event, Field::kPid)),
         Failed(event) ? Value::Text(ErrnoName(event.Get(Field::kErrno)))
                       : Value(),
         Value::Text(path), path2.empty() ? Value() : Value::Text(path2)});
  }

  std::vector<Table> Finish() override {
    Table users;
    users.columns = {{"cname"},
                     {"cpid", Unit::kNumber},
                     {"cuid", Unit::kNumber},
                     {"count", Unit::kNumber, true},
                     {"errors", Unit::kNumber, true},
                     {"read", Unit::kBytes, true},
                     {"written", Unit::kBytes, true},
                     {"first", Unit::kTime},
                     {"last", Unit::kTime},
                     {"ops"}};
    for (const auto& [key, u] : users_) {
      std::string ops;
      for (const Op op : u.ops) {
        ops += (ops.empty() ? "" : " ") + std::string(OpName(op));
      }
      users.rows.push_back({Value::Text(u.comm), Value::Number(key.first),
                            Value::Number(key.second), Value::Number(u.count),
                            Value::Number(u.errors), Value::Number(u.read),
                            Value::Number(u.written), Value::Number(u.first),
                            Value::Number(u.last), Value::Text(ops)});
    }
    if (users_.empty()) {
      users.notes.push_back("nobody was seen to use it");
    }
    if (left_out_ != 0) {
      users.notes.push_back(std::to_string(left_out_) +
                            " operations were of more processes");
    }
    Table history;
    history.title = "changes";
    history.columns = {{"time", Unit::kTime},
                       {"op"},
                       {"cname"},
                       {"cpid", Unit::kNumber},
                       {"errno"},
                       {"path"},
                       {"path2"}};
    history.rows = std::move(steps_);
    if (steps_left_out_ != 0) {
      history.notes.push_back("and " + std::to_string(steps_left_out_) +
                              " more changes");
    }
    return {users, history};
  }

 private:
  struct User {
    std::string comm;
    uint64_t count = 0, errors = 0, read = 0, written = 0;
    uint64_t first = UINT64_MAX, last = 0;
    std::set<Op> ops;
  };

  // A file that is followed: until it has no name and nobody has it open.
  struct File {
    std::set<std::string, std::less<>> names;  // that were seen
    uint64_t handles = 0;                      // opens that were not released
    bool removed = false;
  };

  // Whether the file is followed; from now on, if it is `named` so.
  bool Follow(const Event& event, uint64_t inode, bool named) {
    if (named && inode != 0 && !Failed(event)) {
      const auto [file, fresh] = files_.try_emplace(inode);
      if (fresh) file->second.names.insert(path_);
    }
    return named || (inode != 0 && files_.contains(inode));
  }

  // A number that is made anew under another name belongs to another file.
  void TakeReuse(const Event& event, uint64_t inode, std::string_view path) {
    const bool makes = event.op == Op::create_ || event.op == Op::mknod_ ||
                       event.op == Op::mkdir_ || event.op == Op::symlink_ ||
                       event.op == Op::tmpfile_;
    const auto file = files_.find(inode);
    if (!makes || file == files_.end()) return;
    // A create that found the file there is an open.
    const bool opens = event.op == Op::create_ && !file->second.removed &&
                       file->second.names.contains(path);
    if (!opens) files_.erase(file);
  }

  void TakeNames(const Event& event, uint64_t inode, std::string_view path,
                 std::string_view path2) {
    if (event.op == Op::rename_ &&
        (NumberOr0(event, Field::kFlags) & RENAME_EXCHANGE) != 0) {
      for (auto& [number, file] : files_) {
        const bool first = file.names.contains(path);
        const bool second = file.names.contains(path2);
        if (first == second) continue;
        file.names.erase(std::string(first ? path : path2));
        file.names.emplace(first ? path2 : path);
      }
      return;
    }
    const bool removes = event.op == Op::unlink_ || event.op == Op::rmdir_;
    const bool moves = event.op == Op::rename_ && path != path2;
    const bool opens = event.op == Op::open_ || event.op == Op::opendir_ ||
                       event.op == Op::tmpfile_ ||
                       (event.op == Op::create_ && event.Has(Field::kFh));
    // Who has it open goes on using it by a name that it may not have any more.
    const bool finds = opens || event.op == Op::lookup_ ||
                       event.op == Op::link_ || event.op == Op::create_;
    if (moves || event.op == Op::link_) TakeName(path2, inode);
    if (finds) TakeName(path, inode);
    const auto found = files_.find(inode);
    if (found == files_.end()) return;
    File& file = found->second;
    if (removes || moves) file.names.erase(std::string(path));
    if (finds && !path.empty()) file.names.emplace(path);
    if (!path2.empty()) {
      file.names.emplace(path2);
      file.removed = false;  // a link may name one that had none
    }
    const bool closes = event.op == Op::release_ || event.op == Op::releasedir_;
    if (opens) ++file.handles;
    if (closes && file.handles != 0) --file.handles;
    if (removes) {
      // Names that were given before the trace began only the count tells of.
      file.removed = event.Has(Field::kNlink) ? event.Get(Field::kNlink) <= 1
                                              : file.names.empty();
    }
    if (file.removed && file.handles == 0) files_.erase(found);
  }

  // `path` is now a name of `inode`, and of no other file.
  void TakeName(std::string_view path, uint64_t inode) {
    if (inode == 0) return;
    for (auto entry = files_.begin(); entry != files_.end();) {
      File& file = entry->second;
      const bool other = entry->first != inode;
      const bool lost = other && file.names.erase(std::string(path)) != 0;
      if (lost) file.removed = file.names.empty();
      entry = lost && file.removed && file.handles == 0 ? files_.erase(entry)
                                                        : std::next(entry);
    }
  }

  // `first`, `second`: which of its files is followed.
  void Count(const format::Record& record, bool first, bool second) {
    const Event& event = record.event;
    const std::pair key(NumberOr0(event, Field::kPid),
                        NumberOr0(event, Field::kUid));
    if (users_.size() >= kMostProcesses && !users_.contains(key)) {
      ++left_out_;
      return;
    }
    User& u = users_[key];
    if (record.HasText(Field::kComm)) u.comm = record.Text(Field::kComm);
    ++u.count;
    u.errors += Failed(event) ? 1 : 0;
    for (const tally::Transfer& transfer : tally::TransfersOf(event)) {
      if (!(transfer.end == tally::End::kFile ? first : second)) continue;
      (transfer.reads() ? u.read : u.written) += transfer.bytes;
    }
    u.first = std::min(u.first, record.real_ns);
    u.last = std::max(u.last, record.real_ns);
    u.ops.insert(event.op);
  }

  const std::string path_;
  std::map<uint64_t, File> files_;  // by inode
  std::map<std::pair<uint64_t, uint64_t>, User> users_;
  std::vector<Row> steps_;
  uint64_t left_out_ = 0;
  uint64_t steps_left_out_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakeWho(const AnalysisOptions& options) {
  return std::make_unique<Who>(build::AbsolutePath("/", options.path));
}

}  // namespace tracefs::query

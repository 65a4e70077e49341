// Who did what to one file: by its path, and by its inode once that is known,
// so that its history goes on when it is renamed.
#include <algorithm>
#include <map>
#include <set>

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
    const bool named = path == path_ || path2 == path_;
    if (!named && (inode == 0 || !inodes_.contains(inode))) return;
    if (named && inode != 0 && !Failed(event)) inodes_.insert(inode);
    Count(record);
    // A number that is free is given to another file.
    const bool gone = (event.op == Op::unlink_ || event.op == Op::rmdir_) &&
                      !Failed(event) && NumberOr0(event, Field::kNlink) <= 1;
    if (gone) inodes_.erase(inode);
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

  void Count(const format::Record& record) {
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
    (IsRead(event.op) ? u.read : u.written) += BytesMoved(event);
    u.first = std::min(u.first, record.real_ns);
    u.last = std::max(u.last, record.real_ns);
    u.ops.insert(event.op);
  }

  const std::string path_;
  std::set<uint64_t> inodes_;
  std::map<std::pair<uint64_t, uint64_t>, User> users_;
  std::vector<Row> steps_;
  uint64_t left_out_ = 0;
  uint64_t steps_left_out_ = 0;
};

}  // namespace

std::unique_ptr<Analysis> MakeWho(const AnalysisOptions& options) {
  return std::make_unique<Who>(options.path);
}

}  // namespace tracefs::query

// Who did what to one file. What is asked for is a name; the answer is of the
// file, or the files one after another, that had it: with all that was done to
// them under the names they had before and after.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "tracefs/base/join.h"
#include "tracefs/event/op_set.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/file_identities.h"
#include "tracefs/query/process_numbers.h"
#include "tracefs/reader/trace_limits.h"
#include "tracefs/reader/trace_place.h"
#include "tracefs/tally/sums.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::query {
namespace {

using Number = FileIdentities::Number;

constexpr size_t kMostWho = size_t{1} << 16;
constexpr size_t kMostSteps = 10000;
// What is kept of files that were not called so, and may be yet: of each, and
// of all of them.
constexpr size_t kMostOfOne = 256;
constexpr size_t kMostKept = size_t{1} << 18;
// Mounts that are told apart.
constexpr size_t kMostPlaces = 256;

// What changes a file, or its name.
bool Changes(const Event& event) {
  return TruncatesByOpening(event) ||
         IsAmong<38, Op::create_, Op::mknod_, Op::tmpfile_, Op::symlink_,
                 Op::mkdir_, Op::link_, Op::rename_, Op::unlink_, Op::rmdir_,
                 Op::setattr_, Op::setxattr_, Op::removexattr_, Op::fallocate_>(
             event.op);
}

struct UserKey {
  uint32_t machine = 0;  // format::TraceOrigin
  uint32_t pid = 0;
  uint64_t uid = 0;
  ProcessNumbers::Number process = ProcessNumbers::kUnknown;
  auto operator<=>(const UserKey&) const = default;
};

struct User {
  std::string comm;
  uint64_t count = 0, errors = 0, read = 0, written = 0;
  uint64_t first = UINT64_MAX, last = 0;
  std::set<Op> ops;

  void Add(const User& other) {
    if (other.last >= last && !other.comm.empty()) comm = other.comm;
    count += other.count;
    errors += other.errors;
    read = tally::AddTo(read, other.read);
    written = tally::AddTo(written, other.written);
    first = std::min(first, other.first);
    last = std::max(last, other.last);
    ops.insert(other.ops.begin(), other.ops.end());
  }
};

struct WhoStep {
  uint64_t number = 0;  // of the operation
  Row row;
};

// An operation that another file comes first in: it counts once.
struct Shared {
  Number first = FileIdentities::kNone;
  UserKey key;
  User user;
};

// What was done to one file.
struct Account {
  unsigned asked = 0;  // a bit for each reading of the name that it had
  std::map<UserKey, User> users;
  std::vector<WhoStep> steps;
  std::vector<Shared> shared;
  uint64_t left_out = 0;
  uint64_t steps_left_out = 0;

  size_t size() const { return users.size() + steps.size() + shared.size(); }
};

// The files of one mount.
class Place {
 public:
  explicit Place(std::vector<std::string> readings)
      : readings_(std::move(readings)), names_(readings_.size()) {
    for (size_t i = 0; i < names_.size(); ++i) names_[i].asked = 1u << i;
  }

  // `process`: that did it. `counts`: it was asked about; else only names are
  // followed.
  void Take(const format::Record& record, uint64_t number,
            const ProcessNumbers::Found& process, bool counts);

  // The first reading that anything was done to; nothing if there is none.
  std::optional<size_t> Answer() const;
  const std::string& reading(size_t i) const { return readings_[i]; }
  // Calls `use` with the accounts of a reading.
  template <typename Use>
  void ForEach(size_t reading, Use use) const {
    use(names_[reading]);
    for (const auto& [number, account] : accounts_) {
      if ((account.asked >> reading & 1) != 0) use(account);
    }
  }
  bool IsAsked(size_t reading, Number number) const {
    const auto at = accounts_.find(number);
    return at != accounts_.end() && (at->second.asked >> reading & 1) != 0;
  }
  uint64_t not_followed() const { return identities_.not_followed(); }
  // Whether any operation has one.
  bool has_paths() const { return has_paths_; }

 private:
  void Ask(size_t reading, Number number);
  void Add(const format::Record& record, uint64_t number, const UserKey& key,
           const FileIdentities::Touched& touched, std::string_view path,
           std::string_view path2);
  void AddUse(Account* account, const UserKey& key, const User& user);
  void AddShared(Account* account, const Shared& shared);
  void AddStep(Account* account, WhoStep step);
  bool HasRoom(const Account& account) const {
    return account.asked != 0 ||
           (account.size() < kMostOfOne && kept_ < kMostKept);
  }
  void Gone(Number number);

  const std::vector<std::string> readings_;
  FileIdentities identities_{[this](Number number) { Gone(number); }};
  std::map<Number, Account> accounts_;
  // For each reading: what failed under that name, where no file was known.
  std::vector<Account> names_;
  size_t kept_ = 0;  // of accounts that were not asked for
  bool has_paths_ = false;
};

void Place::Gone(Number number) {
  const auto at = accounts_.find(number);
  if (at == accounts_.end() || at->second.asked != 0) return;
  kept_ -= at->second.size();
  accounts_.erase(at);
}

void Place::Ask(size_t reading, Number number) {
  if (number == FileIdentities::kNone) return;
  Account& account = accounts_[number];
  if (account.asked == 0) kept_ -= account.size();
  account.asked |= 1u << reading;
}

void Place::AddUse(Account* account, const UserKey& key, const User& user) {
  const auto known = account->users.find(key);
  if (known != account->users.end()) {
    known->second.Add(user);
    return;
  }
  if (!HasRoom(*account) || account->users.size() >= kMostWho) {
    ++account->left_out;
    return;
  }
  account->users.emplace(key, user);
  if (account->asked == 0) ++kept_;
}

void Place::AddShared(Account* account, const Shared& shared) {
  if (!HasRoom(*account) || account->shared.size() >= kMostWho) {
    ++account->left_out;
    return;
  }
  account->shared.push_back(shared);
  if (account->asked == 0) ++kept_;
}

void Place::AddStep(Account* account, WhoStep step) {
  if (!HasRoom(*account) || account->steps.size() >= kMostSteps) {
    ++account->steps_left_out;
    return;
  }
  account->steps.push_back(std::move(step));
  if (account->asked == 0) ++kept_;
}

void Place::Take(const format::Record& record, uint64_t number,
                 const ProcessNumbers::Found& process, bool counts) {
  const Event& event = record.event;
  format::RecordPaths paths(record);
  const std::string_view path = paths.first();
  const std::string_view path2 = paths.second();
  has_paths_ |= !path.empty();
  FileIdentities::Touched touched = identities_.Take(event, paths);
  // What did not become of a second file is told by its name.
  if (Failed(event)) touched.second = FileIdentities::kNone;
  for (size_t i = 0; i < readings_.size(); ++i) {
    const std::string& name = readings_[i];
    if (Failed(event)) {
      const bool named = path == name || path2 == name;
      if (named && touched.file == FileIdentities::kNone) {
        touched.file = identities_.Called(name);
      }
      continue;
    }
    // Of a file without a name the directory is told.
    if (path == name && event.op != Op::tmpfile_) Ask(i, touched.file);
    // The destination of a copy has this name; else the file itself gets it.
    if (path2 == name) {
      Ask(i, event.op == Op::copy_file_range_ ? touched.second : touched.file);
    }
    // By the rename of a directory above.
    if (event.op == Op::rename_) Ask(i, identities_.Called(name));
  }
  if (!counts) return;
  const UserKey key = {.machine = OriginOf(record).machine,
                       .pid = process.pid,
                       .uid = event.GetOr0(Field::kUid),
                       .process = process.number};
  Add(record, number, key, touched, path, path2);
}

void Place::Add(const format::Record& record, uint64_t number,
                const UserKey& key, const FileIdentities::Touched& touched,
                std::string_view path, std::string_view path2) {
  const Event& event = record.event;
  User user = {.comm = std::string(record.Text(Field::kComm)),
               .count = 1,
               .errors = Failed(event) ? 1u : 0u,
               .first = record.real_ns,
               .last = record.real_ns,
               .ops = {event.op}};
  User second = user;
  for (const tally::Transfer& transfer : tally::TransfersOf(event)) {
    User& to = transfer.end == tally::End::kFile ? user : second;
    uint64_t& moved = transfer.reads() ? to.read : to.written;
    moved = tally::AddTo(moved, transfer.bytes);
  }
  WhoStep step = {.number = number, .row = {}};
  if (Changes(event)) {
    step.row = {Value::Number(record.real_ns),
                Value::Text(OpName(event.op)),
                Value::Text(record.Text(Field::kComm)),
                Value::Number(key.pid),
                Failed(event) ? Value::Text(ErrnoName(event.Get(Field::kErrno)))
                              : Value(),
                Value::Text(path),
                path2.empty() ? Value() : Value::Text(path2)};
  }
  const auto add_to = [&](Account* account) {
    AddUse(account, key, user);
    if (!step.row.empty()) AddStep(account, step);
  };
  if (Failed(event)) {
    // It counts for the name, too, where no file has it or the file had another
    // one; once, if the file gets this name later.
    for (size_t i = 0; i < readings_.size(); ++i) {
      const bool named = path == readings_[i] || path2 == readings_[i];
      if (!named || IsAsked(i, touched.file)) continue;
      Account& name = names_[i];
      if (touched.file == FileIdentities::kNone) {
        add_to(&name);
        continue;
      }
      if (!step.row.empty()) AddStep(&name, step);
      AddShared(&name, {touched.file, key, user});
    }
  }
  if (touched.file != FileIdentities::kNone) {
    add_to(&accounts_[touched.file]);
  }
  if (touched.second != FileIdentities::kNone &&
      touched.second != touched.file) {
    Account& account = accounts_[touched.second];
    if (!step.row.empty()) AddStep(&account, step);
    AddShared(&account, {touched.file, key, second});
  } else if (touched.second != FileIdentities::kNone) {
    second.count = second.errors = 0;  // a copy within one file
    AddUse(&accounts_[touched.file], key, second);
  }
}

std::optional<size_t> Place::Answer() const {
  for (size_t i = 0; i < readings_.size(); ++i) {
    bool any = false;
    ForEach(i,
            [&](const Account& a) { any |= a.size() != 0 || a.left_out != 0; });
    if (any) return i;
  }
  return std::nullopt;
}

// --- The analysis. ---------------------------------------------------------

class Who final : public Analysis {
 public:
  explicit Who(const AnalysisOptions& options)
      : given_(options.path),
        narrowed_(!options.asked.narrowed_by.empty()),
        folder_(reader::WorkingFolder()) {}

  bool follows_files() const override { return true; }
  void Pass(const format::Record& record, size_t trace) override {
    TakeAny(record, trace, /*counts=*/false);
  }
  void Take(const format::Record& record, size_t trace) override {
    TakeAny(record, trace, /*counts=*/true);
    const Event& event = record.event;
    if (!HasRun(record)) return;
    if (event.op == Op::copy_file_range_ && !event.Has(Field::kInodeOut) &&
        !event.Has(Field::kFhOut) && !record.HasText(Field::kNewPath)) {
      ++copies_without_end_;
    }
  }
  void TakeProcess(const ProcessRecord& record) override {
    processes_.Take(record);
  }

  std::vector<Table> Finish() override;
  Status Verdict() const override { return verdict_; }

 private:
  void TakeAny(const format::Record& record, size_t trace, bool counts) {
    if (record.trace != nullptr) traces_[trace] = record.trace;
    if (!HasRun(record)) return;
    const ProcessNumbers::Found process = processes_.Of(record);
    if (counts) ++operations_;
    if (Place* const place = PlaceOf(record)) {
      place->Take(record, operations_, process, counts);
    }
  }
  // Traces of one mount know the same files.
  Place* PlaceOf(const format::Record& record);
  void Gather(const Place& place, size_t reading);
  Table UsersTable() const;
  Status NothingSeen() const;

  const std::string given_;
  const bool narrowed_;
  const std::string folder_;
  std::map<size_t, const format::TraceContext*> traces_;
  std::map<uint32_t, Place> places_;  // by mount
  ProcessNumbers processes_;
  uint64_t operations_ = 0;
  uint64_t copies_without_end_ = 0;
  // The answer.
  std::map<UserKey, User> users_;
  std::map<uint64_t, Row> steps_;  // by number of operation
  std::set<std::string> readings_;
  uint64_t left_out_ = 0;
  uint64_t steps_left_out_ = 0;
  Status verdict_;
};

Place* Who::PlaceOf(const format::Record& record) {
  const uint32_t mount = OriginOf(record).mount;
  const auto known = places_.find(mount);
  if (known != places_.end()) return &known->second;
  if (places_.size() == kMostPlaces) return nullptr;
  reader::TracePlace place("", "");
  if (record.trace != nullptr) {
    place = reader::TracePlace(record.trace->description.header);
  }
  return &places_.try_emplace(mount, place.Readings(given_, folder_))
              .first->second;
}

void Who::Gather(const Place& place, size_t reading) {
  readings_.insert(place.reading(reading));
  place.ForEach(reading, [&](const Account& account) {
    const auto add = [&](const UserKey& key, const User& user) {
      if (users_.size() >= kMostWho && !users_.contains(key)) {
        left_out_ += user.count;
      } else {
        users_[key].Add(user);
      }
    };
    for (const auto& [key, user] : account.users) add(key, user);
    for (const Shared& shared : account.shared) {
      User user = shared.user;
      if (place.IsAsked(reading, shared.first)) user.count = user.errors = 0;
      add(shared.key, user);
    }
    for (const WhoStep& step : account.steps) {
      if (steps_.size() < kMostSteps) {
        steps_.try_emplace(step.number, step.row);
      } else if (!steps_.contains(step.number)) {
        ++steps_left_out_;
      }
    }
    left_out_ += account.left_out;
    steps_left_out_ += account.steps_left_out;
  });
}

Table Who::UsersTable() const {
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
  std::map<uint32_t, std::string_view> hosts;
  for (const auto& [trace, context] : traces_) {
    hosts[context->origin.machine] =
        context->description.header.Get("host.name");
  }
  const bool several = hosts.size() > 1;
  if (several) users.columns.push_back({"host"});
  for (const auto& [key, u] : users_) {
    const std::string ops = JoinWords(u.ops, " ", &OpName);
    users.rows.push_back({Value::Text(u.comm), Value::Number(key.pid),
                          Value::Number(key.uid), Value::Number(u.count),
                          Value::Number(u.errors), Value::Number(u.read),
                          Value::Number(u.written), Value::Number(u.first),
                          Value::Number(u.last), Value::Text(ops)});
    if (several) users.rows.back().push_back(Value::Text(hosts[key.machine]));
  }
  return users;
}

std::vector<Table> Who::Finish() {
  uint64_t not_followed = 0;
  for (const auto& [name, place] : places_) {
    if (const auto reading = place.Answer()) Gather(place, *reading);
    not_followed += place.not_followed();
  }
  Table users = UsersTable();
  const auto note = [&](std::string text) {
    users.notes.push_back(std::move(text));
  };
  for (const std::string& reading : readings_) {
    if (reading != given_) note("in the trace it is " + TerminalText(reading));
  }
  if (left_out_ != 0) {
    note(std::to_string(left_out_) +
         " operations are not told by process: there was no room");
  }
  if (not_followed != 0) {
    note(std::to_string(not_followed) +
         " operations were on files that there was no room to follow: "
         "earlier names may be missing");
  }
  if (copies_without_end_ != 0) {
    note(std::to_string(copies_without_end_) +
         " copies were recorded without their destination, which may be "
         "this file");
  }
  const bool unknown = std::ranges::any_of(users_, [](const auto& user) {
    return user.first.pid == 0 && user.second.comm.empty();
  });
  if (unknown) note("the process of some operations was not recorded");
  if (users_.empty()) {
    verdict_ = NothingSeen();
    note(verdict_.message());
  }
  for (const auto& [trace, context] : traces_) {
    if (!users_.empty()) break;
    for (std::string& limit : reader::LimitsOf(*context)) {
      note(TerminalWord(context->name) + ": " + limit);
    }
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
  for (auto& [number, row] : steps_) history.rows.push_back(std::move(row));
  if (steps_left_out_ != 0) {
    history.notes.push_back("and " + std::to_string(steps_left_out_) +
                            " more changes");
  }
  return {users, history};
}

Status Who::NothingSeen() const {
  const std::string name = TerminalWord(given_);
  const std::string of = narrowed_ ? " that the question is about" : "";
  if (operations_ == 0) {
    return Status::Corrupt(name + ": there is no operation" + of);
  }
  const bool with_path = std::ranges::any_of(
      places_, [](const auto& one) { return one.second.has_paths(); });
  if (!with_path) {
    return Status::Corrupt(name + ": no operation was recorded with a path");
  }
  std::vector<reader::TracePlace> places;
  for (const auto& [trace, context] : traces_) {
    places.emplace_back(context->description.header);
  }
  return Status::Corrupt(name + ": " +
                         reader::WhyNotSeen(places, given_, folder_, of));
}

}  // namespace

std::unique_ptr<Analysis> MakeWho(const AnalysisOptions& options) {
  return std::make_unique<Who>(options);
}

}  // namespace tracefs::query

#include "tracefs/recv/fleet/merge.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <tuple>
#include <vector>

#include "tracefs/base/notice.h"
#include "tracefs/export/parquet_merge.h"
#include "tracefs/recv/fleet/places.h"
#include "tracefs/recv/fleet/table_name.h"

namespace tracefs {
namespace {

// The folder beside that of a day.
constexpr char kBeside[] = ".merge-";
// How long an old folder stays for those who have just listed it.
constexpr int64_t kGraceS = 60;
// For one merged file: each has a footer in memory.
constexpr size_t kMaxSources = 1024;

struct Source {
  TableName name;
  uint64_t bytes = 0;
  timespec written{};
};
using Group = std::vector<Source>;

TableName MergedName(const Group& group) {
  TableName name = group.front().name;
  name.last = group.back().name.last;
  return name;
}

// What of a run of files becomes one: so many that it is twice as large as the
// largest of them. So no byte is written more than a few times, however many
// small files come behind a large one.
void Choose(std::span<const Source> run, std::vector<Group>* groups) {
  if (run.size() < 2) return;
  uint64_t bytes = 0;
  size_t largest = 0;
  for (size_t i = 0; i < run.size(); ++i) {
    bytes += run[i].bytes;
    if (run[i].bytes > run[largest].bytes) largest = i;
  }
  if (bytes >= 2 * run[largest].bytes) {
    groups->emplace_back(run.begin(), run.end());
    return;
  }
  Choose(run.first(largest), groups);
  Choose(run.subspan(largest + 1), groups);
}

// What follows each other, of which the time is over. `*waiting`: there are
// files whose time is not.
std::vector<Group> GroupsOf(int day, const MergeRules& rules, int64_t now_s,
                            bool* waiting) {
  std::vector<Source> all;
  for (const std::string& text : NamesIn(day, "")) {
    const auto name = TableName::Parse(text);
    struct stat st;
    if (!name || name->format != rules.format ||
        ::fstatat(day, text.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(st.st_mode)) {
      continue;
    }
    const int64_t end = (st.st_mtim.tv_sec / rules.every_s + 1) * rules.every_s;
    // Some come late.
    if (now_s < end + rules.every_s / 4) {
      *waiting = true;
      continue;
    }
    all.push_back({*name, static_cast<uint64_t>(st.st_size), st.st_mtim});
  }
  std::sort(all.begin(), all.end(), [](const Source& a, const Source& b) {
    return std::tie(a.name.serial, a.name.first) <
           std::tie(b.name.serial, b.name.first);
  });
  std::vector<Group> groups;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    uint64_t bytes = 0;
    for (; end < all.size() && end - begin < kMaxSources; ++end) {
      bytes += all[end].bytes;
      if (end != begin && (all[end].name.serial != all[begin].name.serial ||
                           all[end].name.first != all[end - 1].name.last + 1 ||
                           bytes > rules.most_bytes)) {
        break;
      }
    }
    Choose(std::span(all).subspan(begin, end - begin), &groups);
  }
  return groups;
}

Status CopyAll(int from, OutputBuffer& out) {
  std::vector<char> buffer(size_t{1} << 20);
  for (;;) {
    const ssize_t n = ::read(from, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Status::System(errno, "a table");
    if (n == 0) return out.status();
    out.Append({buffer.data(), static_cast<size_t>(n)});
  }
}

// The file of a group, in the folder beside, for good.
Status WriteMerged(int day, int beside, const Group& group,
                   const std::string& format) {
  const std::string name = MergedName(group).Text();
  std::vector<UniqueFd> opened;
  std::vector<int> files;
  timespec written = group.front().written;
  for (const Source& source : group) {
    const std::string text = source.name.Text();
    opened.emplace_back(
        ::openat(day, text.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened.back()) return Status::System(errno, "'" + text + "'");
    files.push_back(opened.back().get());
    written.tv_sec = std::max(written.tv_sec, source.written.tv_sec);
  }
  const UniqueFd fd(
      ::openat(beside, name.c_str(),
               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return Status::System(errno, "'" + name + "'");
  FdOutput out(fd.get());
  Status status;
  if (format == "parquet") {
    status = MergeParquet(files, name, out);
  } else {
    for (const int file : files) {
      if (status.ok()) status = CopyAll(file, out);
    }
    if (status.ok()) status = out.Flush();
  }
  // Retention goes by when it was recorded, not merged.
  const timespec times[2] = {written, written};
  if (status.ok() &&
      (::futimens(fd.get(), times) != 0 || ::fsync(fd.get()) != 0)) {
    status = Status::System(errno, "'" + name + "'");
  }
  if (!status.ok()) ::unlinkat(beside, name.c_str(), 0);
  return status;
}

// Whether a file system that says so does not know how.
bool Unable(int error) {
  return error == EPERM || error == EINVAL || error == ENOSYS ||
         error == EOPNOTSUPP || error == EXDEV || error == EMLINK;
}

// The folder beside gets links to all that is not in `groups`, and the day's
// place.
Status Exchange(int host, int day, int beside, const std::string& day_name,
                const std::vector<Group>& groups) {
  std::set<std::string> merged;
  for (const Group& group : groups) {
    for (const Source& source : group) merged.insert(source.name.Text());
  }
  for (const std::string& name : NamesIn(day, "")) {
    // Under the lock no file is being written: it was left behind.
    if (name == "." || name == ".." || merged.contains(name) ||
        name.starts_with(kTemporaryPrefix)) {
      continue;
    }
    if (::linkat(day, name.c_str(), beside, name.c_str(), 0) != 0) {
      return Status::System(errno, "'" + name + "'");
    }
  }
  const std::string aside = kBeside + day_name;
  if (::fsync(beside) != 0 ||
      ::renameat2(host, aside.c_str(), host, day_name.c_str(),
                  RENAME_EXCHANGE) != 0 ||
      ::fsync(host) != 0) {
    return Status::System(errno, "'" + day_name + "'");
  }
  return Status::Ok();
}

// The file with the hidden name takes the place of those that it has.
Status Finish(int day, const TableName& merged) {
  const std::string name = merged.Text();
  for (const std::string& text : NamesIn(day, merged.serial + '-')) {
    const auto one = TableName::Parse(text);
    if (one && text != name && one->format == merged.format &&
        one->first >= merged.first && one->last <= merged.last) {
      ::unlinkat(day, text.c_str(), 0);
    }
  }
  const std::string hidden = std::string(kMergedPrefix) + name;
  // They are gone for good before it can be seen: one that came back beside it
  // would be there twice, and no turn would find out.
  if (::fsync(day) != 0 ||
      ::renameat(day, hidden.c_str(), day, name.c_str()) != 0 ||
      ::fsync(day) != 0) {
    return Status::System(errno, "'" + name + "'");
  }
  return Status::Ok();
}

Status OneByOne(int day, int beside, const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    const TableName merged = MergedName(group);
    const std::string name = merged.Text();
    const std::string hidden = std::string(kMergedPrefix) + name;
    if (::renameat(beside, name.c_str(), day, hidden.c_str()) != 0 ||
        ::fsync(day) != 0) {
      return Status::System(errno, "'" + name + "'");
    }
    if (Status s = Finish(day, merged); !s.ok()) return s;
  }
  return Status::Ok();
}

// What a turn that was killed has left with hidden names.
Status FinishLeft(const HostFolder& folder, int day) {
  const std::vector<std::string> left = NamesIn(day, kMergedPrefix);
  if (left.empty()) return Status::Ok();
  const HostFolder::Lock lock(folder);
  if (!lock.status().ok()) return lock.status();
  // The hidden names before those go that they stand for.
  if (::fsync(day) != 0) return Status::System(errno, "a day");
  for (const std::string& text : left) {
    const auto name =
        TableName::Parse(std::string_view(text).substr(kMergedPrefix.size()));
    if (!name) continue;
    if (Status s = Finish(day, *name); !s.ok()) return s;
  }
  return Status::Ok();
}

// True: there is none, or none any more.
bool RemoveOldFolder(int host, const std::string& name, int64_t grace_s,
                     int64_t now_s) {
  struct stat st;
  if (::fstatat(host, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) return true;
  if (now_s < st.st_ctim.tv_sec + grace_s) return false;
  RemoveFolder(host, name);
  return true;
}

}  // namespace

bool CanMerge(const std::string& format) {
  return format == "parquet" || format == "jsonl";
}

Status Merger::MergeHost(const std::string& host, int64_t now_s,
                         MergeCounts* counts) {
  const Result<HostFolder> folder = HostFolder::Open(root_, host);
  if (!folder.ok()) return folder.status();
  const int64_t grace_s = std::min(kGraceS, rules_.every_s);
  for (const std::string& day_name : NamesIn(folder->fd(), kDayPrefix)) {
    const std::string aside = kBeside + day_name;
    if (!RemoveOldFolder(folder->fd(), aside, grace_s, now_s)) continue;
    const UniqueFd day(::openat(folder->fd(), day_name.c_str(),
                                O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!day) continue;
    if (Status s = FinishLeft(*folder, day.get()); !s.ok()) return s;
    struct stat st;
    const std::string place = host + '/' + day_name;
    if (::fstat(day.get(), &st) != 0) continue;
    const std::pair<int64_t, int64_t> changed = {st.st_mtim.tv_sec,
                                                 st.st_mtim.tv_nsec};
    if (const auto found = settled_.find(place);
        found != settled_.end() && found->second == changed) {
      continue;
    }
    bool waiting = false;
    std::vector<Group> groups = GroupsOf(day.get(), rules_, now_s, &waiting);
    std::erase_if(groups, [&](const Group& group) {
      return hopeless_.contains(host + '/' + MergedName(group).Text());
    });
    if (groups.empty()) {
      if (!waiting) settled_[place] = changed;
      continue;
    }
    const Result<UniqueFd> beside = OpenOrMakeFolder(folder->fd(), aside);
    if (!beside.ok()) return beside.status();
    std::vector<Group> written;
    for (const Group& group : groups) {
      const Status s =
          WriteMerged(day.get(), beside->get(), group, rules_.format);
      if (s.ok()) {
        written.push_back(group);
        continue;
      }
      if (s.code() == StatusCode::kSystem) {
        RemoveFolder(folder->fd(), aside);
        return s;
      }
      const std::string name = MergedName(group).Text();
      hopeless_.insert(host + '/' + name);
      Notify(NoticeId::kOutputFailed, "tables of host '" + host +
                                          "' stay small: " + s.message() +
                                          " (" + name + ")");
    }
    if (written.empty()) {
      RemoveFolder(folder->fd(), aside);
      continue;
    }
    const HostFolder::Lock lock(*folder);
    Status status = lock.status();
    if (status.ok()) {
      status = rules_.exchanges ? Exchange(folder->fd(), day.get(),
                                           beside->get(), day_name, written)
                                : Status::System(EOPNOTSUPP, "as if");
    }
    if (status.code() == StatusCode::kSystem && Unable(status.error())) {
      status = OneByOne(day.get(), beside->get(), written);
      RemoveFolder(folder->fd(), aside);
    }
    if (!status.ok()) return status;
    for (const Group& group : written) counts->merged += group.size();
    counts->made += written.size();
  }
  return Status::Ok();
}

}  // namespace tracefs

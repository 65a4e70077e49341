#include "tracefs/survive/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace tracefs::survive {
namespace {

// Copies begin here, where few numbers are taken early.
constexpr int kFirstCopy = 64;

Result<std::vector<int>> OpenNumbers() {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc/self/fd"),
                                                   &::closedir);
  if (folder == nullptr) return Status::System(errno, "/proc/self/fd");
  std::vector<int> numbers;
  const int own = ::dirfd(folder.get());
  while (const dirent* entry = ::readdir(folder.get())) {
    int number = -1;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, number).ptr == end &&
        number > STDERR_FILENO && number != own) {
      numbers.push_back(number);
    }
  }
  return numbers;
}

// Descriptors that records name, by number.
using Named = std::unordered_map<int, std::atomic<int32_t>*>;

bool Is(const NodeRecord& node, int fd) {
  // A store that does not answer must not hold up whoever takes over.
  struct statx st;
  return ::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &st) ==
             0 &&
         makedev(st.stx_dev_major, st.stx_dev_minor) == node.device &&
         st.stx_ino == node.inode;
}

void Enter(std::atomic<int32_t>& fd, bool right, Named* named) {
  const int number = fd.load();
  if (number < 0) return;
  if (number <= STDERR_FILENO || !right ||
      !named->emplace(number, &fd).second) {
    fd.store(-1);
  }
}

Named NamedIn(Area& area) {
  Named named;
  Header& header = area.header();
  Enter(header.daemon, /*right=*/true, &named);
  for (std::atomic<int32_t>& fd : header.helpers) {
    Enter(fd, /*right=*/true, &named);
  }
  const uint64_t added = header.added.load();
  for (size_t i = 0; i < header.orders.size(); ++i) {
    const bool right = (added >> i & 1) != 0;
    Enter(header.trace_helpers[i], right, &named);
    for (std::atomic<int32_t>& fd : header.orders[i].files) {
      Enter(fd, right, &named);
    }
  }
  std::unordered_map<uint64_t, const NodeRecord*> by_id;
  const auto nodes =
      std::min<size_t>(area.header().nodes_used.load(), Area::kMostNodes);
  for (uint32_t i = 0; i < nodes; ++i) {
    NodeRecord& node = area.node(i);
    if (node.id.load() == 0) continue;
    by_id.emplace(node.id.load(), &node);
    Enter(node.fd, Is(node, node.fd.load()), &named);
  }
  const auto opens =
      std::min<size_t>(area.header().opens_used.load(), Area::kMostOpens);
  for (uint32_t i = 0; i < opens; ++i) {
    OpenRecord& open = area.open(i);
    const uint64_t id = open.node.load();
    if (id == 0) continue;
    const auto node = by_id.find(id);
    const auto right = [&](int fd) {
      // That of the root has no record.
      return id == 1 || (node != by_id.end() && Is(*node->second, fd));
    };
    Enter(open.fd, right(open.fd.load()), &named);
    Enter(open.plain_fd, right(open.plain_fd.load()), &named);
  }
  return named;
}

// Files that traces have gone on in since they began, by number.
std::unordered_map<int, int32_t*> PartsOfTraces(Area& area) {
  std::unordered_map<int, int32_t*> parts;
  for (TraceRecord& trace : area.header().traces) {
    const uint32_t turns = trace.turns.load();
    if (turns == 0) continue;
    TraceState& state = trace.states[turns % 2];
    int32_t& fd = state.output.fd;
    if (state.ended == 0 && fd > STDERR_FILENO) parts.emplace(fd, &fd);
  }
  return parts;
}

}  // namespace

std::vector<int> NumbersIn(Area& area) {
  std::vector<int> numbers;
  const auto add = [&](const std::atomic<int32_t>& fd) {
    if (fd.load() > STDERR_FILENO) numbers.push_back(fd.load());
  };
  Header& header = area.header();
  add(header.daemon);
  for (const auto& fd : header.helpers) add(fd);
  for (const auto& fd : header.trace_helpers) add(fd);
  for (const OrderRecord& order : header.orders) {
    for (const auto& fd : order.files) add(fd);
  }
  for (const auto& [number, place] : PartsOfTraces(area)) {
    numbers.push_back(number);
  }
  const auto nodes = std::min<size_t>(header.nodes_used, Area::kMostNodes);
  for (uint32_t i = 0; i < nodes; ++i) {
    if (area.node(i).id.load() != 0) add(area.node(i).fd);
  }
  const auto opens = std::min<size_t>(header.opens_used, Area::kMostOpens);
  for (uint32_t i = 0; i < opens; ++i) {
    if (area.open(i).node.load() == 0) continue;
    add(area.open(i).fd);
    add(area.open(i).plain_fd);
  }
  return numbers;
}

pid_t ProcessOf(int pidfd) {
  std::ifstream facts("/proc/self/fdinfo/" + std::to_string(pidfd));
  std::string word;
  while (facts >> word) {
    pid_t process = 0;
    // -1 where it has ended, 0 where it cannot be seen from here.
    if (word == "Pid:" && facts >> process) return std::max(process, 0);
  }
  return 0;
}

bool ShareDescriptors(pid_t one, pid_t other) {
  return one > 0 && other > 0 &&
         ::syscall(SYS_kcmp, one, other, KCMP_FILES, 0, 0) == 0;
}

Status Descriptors::Keep(Area& area) {
  Result<std::vector<int>> numbers = OpenNumbers();
  if (!numbers.ok()) return numbers.status();
  const std::vector<int> records = NumbersIn(area);
  const std::unordered_set<int> named(records.begin(), records.end());
  for (const int number : *numbers) {
    if (named.contains(number)) continue;
    const int copy = ::fcntl(number, F_DUPFD_CLOEXEC, kFirstCopy);
    if (copy < 0) return Status::System(errno, "keeping descriptors");
    kept_.emplace_back(number, copy);
  }
  return Status::Ok();
}

Status Descriptors::Restore(Area& area) const {
  Named named = NamedIn(area);
  // What is kept is there all the time: the keeper uses the same numbers.
  std::unordered_set<int> stays;
  std::unordered_map<int, int32_t*> parts = PartsOfTraces(area);
  int highest = kFirstCopy;
  for (const auto& [number, copy] : kept_) {
    stays.insert({number, copy});
    highest = std::max(highest, number + 1);
  }
  for (const auto& [number, place] : parts) stays.insert(number);
  Result<std::vector<int>> numbers = OpenNumbers();
  if (!numbers.ok()) return numbers.status();
  for (const int number : *numbers) {
    if (!named.contains(number) && !stays.contains(number)) ::close(number);
  }
  for (const auto& [number, copy] : kept_) {
    if (const auto part = parts.find(number); part != parts.end()) {
      *part->second = ::fcntl(number, F_DUPFD_CLOEXEC, highest);
      if (*part->second < 0) return Status::System(errno, "moving traces");
    } else if (const auto there = named.find(number); there != named.end()) {
      // The record first: what is not in one is closed.
      const int moved = ::fcntl(number, F_DUPFD_CLOEXEC, highest);
      if (moved < 0) return Status::System(errno, "moving descriptors");
      there->second->store(moved);
    }
    if (::dup3(copy, number, O_CLOEXEC) < 0) {
      return Status::System(errno, "restoring descriptors");
    }
  }
  return Status::Ok();
}

}  // namespace tracefs::survive

// Reading directories.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

void Fill(const char* dir, int n) {
  ::mkdir(dir, 0755);
  for (int i = 0; i < n; ++i) {
    const std::string name = std::string(dir) + "/e" + std::to_string(i);
    ::close(::open(name.c_str(), O_CREAT | O_WRONLY, 0644));
  }
}

// Names as getdents64 gives them with a buffer of this size, sorted.
std::vector<std::string> GetDents(int fd, size_t buffer_size, int* calls,
                                  long* last) {
  std::vector<char> buffer(buffer_size);
  std::vector<std::string> names;
  *calls = 0;
  for (;;) {
    const long n = ::syscall(SYS_getdents64, fd, buffer.data(), buffer.size());
    *last = n < 0 ? -errno : n;
    if (n <= 0) break;
    ++*calls;
    for (long at = 0; at < n;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      names.emplace_back(entry->d_name);
      at += entry->d_reclen;
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

template <int entries, size_t buffer>
void ListWithBuffer(Run& run) {
  Fill("d", entries);
  const int fd = FD(::open("d", O_RDONLY));
  int calls;
  long last;
  const auto names = GetDents(fd, buffer, &calls, &last);
  std::string all;
  for (const std::string& name : names) all += name + "\n";
  run.Note("%zu names, last %ld", names.size(), last);
  run.Bytes("names", all);
  CALL(::lseek(fd, 0, SEEK_SET));
  run.Note("again %zu", GetDents(fd, buffer, &calls, &last).size());
}

constexpr Scenario kScenarios[] = {
    {"dir.empty", kAll, ListWithBuffer<0, 4096>},
    {"dir.few", kAll, ListWithBuffer<5, 4096>},
    {"dir.small_buffer", kAll, ListWithBuffer<100, 64>},
    {"dir.tiny_buffer", kAll, ListWithBuffer<3, 16>},
    {"dir.large_buffer", kAll, ListWithBuffer<600, 1 << 20>},
    {"dir.thousands", kAll, ListWithBuffer<1500, 32768>},

    {"dir.dot_and_dotdot", kAll,
     [](Run& run) {
       CALL(::mkdir("d", 0755));
       CALL(::mkdir("d/e", 0755));
       struct stat self, parent;
       CALL(::stat("d/e", &self));
       CALL(::stat("d", &parent));
       DIR* dir = ::opendir("d/e");
       int dots = 0;
       while (const dirent* entry = ::readdir(dir)) {
         if (std::strcmp(entry->d_name, ".") == 0) {
           ++dots;
           run.Note("self %d type %d", entry->d_ino == self.st_ino,
                    entry->d_type);
         } else if (std::strcmp(entry->d_name, "..") == 0) {
           ++dots;
           run.Note("parent %d type %d", entry->d_ino == parent.st_ino,
                    entry->d_type);
         }
       }
       run.Note("dots %d", dots);
       ::closedir(dir);
     }},
    {"dir.inode_numbers_and_types_match_stat", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       CALL(::mkdir("d", 0755));
       CALL(::symlink("f", "l"));
       CALL(::mkfifo("p", 0644));
       CALL(::mknod("s", S_IFSOCK | 0644, 0));
       DIR* dir = ::opendir(".");
       int wrong = 0, n = 0;
       while (const dirent* entry = ::readdir(dir)) {
         struct stat st;
         if (entry->d_name[0] == '.') continue;
         ++n;
         if (::lstat(entry->d_name, &st) != 0 || st.st_ino != entry->d_ino ||
             (entry->d_type != DT_UNKNOWN &&
              entry->d_type != IFTODT(st.st_mode))) {
           ++wrong;
         }
       }
       ::closedir(dir);
       run.Note("%d entries, %d wrong", n, wrong);
     }},
    {"dir.seekdir_telldir", kAll,
     [](Run& run) {
       Fill("d", 250);
       DIR* dir = ::opendir("d");
       std::vector<std::pair<long, std::string>> seen;
       for (;;) {
         const long at = ::telldir(dir);
         const dirent* entry = ::readdir(dir);
         if (entry == nullptr) break;
         seen.emplace_back(at, entry->d_name);
       }
       int wrong = 0;
       for (size_t i = 0; i < seen.size(); i += 7) {
         const auto& [at, name] = seen[(i * 131) % seen.size()];
         ::seekdir(dir, at);
         const dirent* entry = ::readdir(dir);
         if (entry == nullptr || name != entry->d_name) ++wrong;
       }
       ::rewinddir(dir);
       const dirent* first = ::readdir(dir);
       run.Note("%zu entries, %d wrong, first again %d", seen.size(), wrong,
                first != nullptr && seen[0].second == first->d_name);
       ::closedir(dir);
     }},
    {"dir.streams_begin_where_another_stood", kAll,
     [](Run& run) {
       Fill("d", 250);
       std::vector<std::pair<long, std::string>> seen;
       DIR* dir = ::opendir("d");
       for (;;) {
         const long at = ::telldir(dir);
         const dirent* entry = ::readdir(dir);
         if (entry == nullptr) break;
         seen.emplace_back(at, entry->d_name);
       }
       ::closedir(dir);
       int wrong = 0;
       for (size_t i = 1; i < seen.size(); i += 50) {
         // Its first request is for what comes after that place.
         dir = ::opendir("d");
         ::seekdir(dir, seen[i].first);
         const dirent* entry = ::readdir(dir);
         if (entry == nullptr || seen[i].second != entry->d_name) ++wrong;
         ::closedir(dir);
       }
       run.Note("%zu entries, %d wrong", seen.size(), wrong);
     }},
    {"dir.rewinddir_shows_new_names", kAll,
     [](Run& run) {
       Fill("d", 3);
       DIR* dir = ::opendir("d");
       while (::readdir(dir) != nullptr) {
       }
       WriteFile("d/new", "x");
       CALL(::unlink("d/e1"));
       ::rewinddir(dir);
       std::set<std::string> names;
       while (const dirent* entry = ::readdir(dir)) {
         names.insert(entry->d_name);
       }
       run.Note("new %zu e1 %zu of %zu", names.count("new"), names.count("e1"),
                names.size());
       ::closedir(dir);
     }},
    {"dir.deletion_during_scan", kAll,
     [](Run& run) {
       Fill("d", 300);
       DIR* dir = ::opendir("d");
       int deleted = 0;
       while (const dirent* entry = ::readdir(dir)) {
         if (entry->d_name[0] == '.') continue;
         const std::string path = std::string("d/") + entry->d_name;
         if (::unlink(path.c_str()) == 0) ++deleted;
       }
       ::closedir(dir);
       run.Note("deleted %d", deleted);
       run.List("d");
       CALL(::rmdir("d"));
     }},
    {"dir.creation_during_scan_ends", kAll,
     [](Run& run) {
       Fill("d", 120);
       DIR* dir = ::opendir("d");
       std::map<std::string, int> seen;
       int made = 0;
       while (const dirent* entry = ::readdir(dir)) {
         ++seen[entry->d_name];
         if (made < 120)
           WriteFile(("d/n" + std::to_string(made++)).c_str(), "");
       }
       ::closedir(dir);
       // Those there from the start are seen exactly once.
       int wrong = 0;
       for (int i = 0; i < 120; ++i) {
         if (seen["e" + std::to_string(i)] != 1) ++wrong;
       }
       run.Note("wrong %d", wrong);
     }},
    {"dir.rename_during_scan_ends", kAll,
     [](Run& run) {
       Fill("d", 150);
       DIR* dir = ::opendir("d");
       int renamed = 0;
       for (int steps = 0; steps < 5000; ++steps) {
         const dirent* entry = ::readdir(dir);
         if (entry == nullptr) break;
         if (entry->d_name[0] != 'e') continue;
         const std::string name = entry->d_name;
         if (::rename(("d/" + name).c_str(), ("d/r" + name).c_str()) == 0) {
           ++renamed;
         }
       }
       ::closedir(dir);
       run.Note("renamed %d", renamed);
       run.List("d");
     }},
    {"dir.rm_rf_style_removal", kAll,
     [](Run& run) {
       CALL(::mkdir("t", 0755));
       for (int i = 0; i < 10; ++i) {
         const std::string sub = "t/s" + std::to_string(i);
         Fill(sub.c_str(), 12);
       }
       for (int i = 0; i < 10; ++i) {
         const std::string sub = "t/s" + std::to_string(i);
         const int fd = ::open(sub.c_str(), O_RDONLY | O_DIRECTORY);
         int calls;
         long last;
         int failed = 0;
         for (const std::string& name : GetDents(fd, 4096, &calls, &last)) {
           if (name != "." && name != ".." &&
               ::unlinkat(fd, name.c_str(), 0) != 0) {
             ++failed;
           }
         }
         ::close(fd);
         run.Note("failed %d", failed);
         run.Ret("rmdir", ::rmdir(sub.c_str()));
       }
       CALL(::rmdir("t"));
     }},
    {"dir.two_scans_at_once", kAll,
     [](Run& run) {
       Fill("d", 150);
       DIR* one = ::opendir("d");
       DIR* two = ::opendir("d");
       size_t n1 = 0, n2 = 0;
       for (;;) {
         const bool a = ::readdir(one) != nullptr;
         const bool b = a && ::readdir(two) != nullptr;
         n1 += a;
         n2 += b;
         if (!a) break;
       }
       run.Note("%zu %zu", n1, n2);
       ::closedir(one);
       ::closedir(two);
     }},
    {"dir.dup_shares_the_position", kAll,
     [](Run& run) {
       Fill("d", 50);
       const int a = FD(::open("d", O_RDONLY));
       const int b = ::dup(a);
       int calls;
       long last;
       const size_t first = GetDents(a, 4096, &calls, &last).size();
       const size_t second = GetDents(b, 4096, &calls, &last).size();
       run.Note("%zu then %zu", first, second);
       CALL(::lseek(b, 0, SEEK_SET));
       run.Note("%zu", GetDents(a, 4096, &calls, &last).size());
     }},
    {"dir.removed_while_open", kAll,
     [](Run& run) {
       Fill("d", 5);
       const int fd = FD(::open("d", O_RDONLY));
       for (int i = 0; i < 5; ++i) {
         ::unlink(("d/e" + std::to_string(i)).c_str());
       }
       CALL(::rmdir("d"));
       int calls;
       long last;
       const auto names = GetDents(fd, 4096, &calls, &last);
       run.Note("%zu names, last %ld", names.size(), last);
       run.FStat(fd);
     }},
    {"dir.getdents_of_a_file", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int fd = FD(::open("f", O_RDONLY));
       char b[1024];
       CALL(::syscall(SYS_getdents64, fd, b, sizeof b));
       const int p = FD(::open(".", O_PATH));
       CALL(::syscall(SYS_getdents64, p, b, sizeof b));
     }},
    {"dir.odd_names_are_listed", kAll,
     [](Run& run) {
       for (const char* name : {"new\nline", "\xff\xfe", "\x7f", " ", "a b"}) {
         WriteFile(name, name);
       }
       const std::string longest(255, 'L');
       WriteFile(longest.c_str(), "x");
       run.List(".");
     }},
    {"dir.peer_creates_while_we_scan_again", kAll,
     [](Run& run) {
       Fill("d", 10);
       run.List("d");
       Run::Peer peer(run, [](Run&, Run::Peer&) {
         WriteFile("d/peer", "x");
         ::unlink("d/e0");
       });
       peer.Join();
       run.List("d");
     }},
    {"dir.listing_then_stat_all", kAll,
     [](Run& run) {
       for (int i = 0; i < 120; ++i) {
         WriteFile(("f" + std::to_string(i)).c_str(), std::string(i, 'x'));
       }
       DIR* dir = ::opendir(".");
       long sum = 0;
       while (const dirent* entry = ::readdir(dir)) {
         struct stat st;
         if (entry->d_name[0] == 'f' &&
             ::fstatat(::dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ==
                 0) {
           sum += st.st_size;
         }
       }
       ::closedir(dir);
       run.Note("sum %ld", sum);
     }},
    {"dir.opened_as_user_listed_after_chmod", kUsersOnly,
     [](Run& run) {
       Fill("d", 4);
       const int fd = FD(::open("d", O_RDONLY));
       CALL(::chmod("d", 0));
       int calls;
       long last;
       run.Note("%zu", GetDents(fd, 4096, &calls, &last).size());
       FD(::open("d", O_RDONLY));
       CALL(::chmod("d", 0755));
     }},
    {"dir.directory_flags", kAll,
     [](Run& run) {
       Fill("d", 1);
       const int fd = FD(::open("d", O_RDONLY));
       CALL(::fchmod(fd, 0700));
       CALL(::fchdir(fd));
       run.List(".");
       CALL(::fsync(fd));
       CALL(::lseek(fd, 0, SEEK_CUR));
       CALL(::lseek(fd, -5, SEEK_SET));
       CALL(::fchdir(::open("e0", O_RDONLY)));
     }},
};

}  // namespace

std::span<const Scenario> DirectoryScenarios() { return kScenarios; }

}  // namespace tracefs::transparency

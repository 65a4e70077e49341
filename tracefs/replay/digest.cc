#include "tracefs/replay/digest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "tracefs/base/crc32c.h"
#include "tracefs/base/hex.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/replay/hole_budget.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/replay/privilege.h"

namespace tracefs::replay {
namespace {

constexpr size_t kDeepest = 4096;
constexpr char kNotRead[] = "-";

std::string HexOf(Sha256& hash) {
  const Digest digest = hash.Finish();
  return Hex(digest);
}

// "-": not read, for want of time.
Result<std::string> HashFile(int dir, const std::string& name,
                             HoleBudget* holes, uint32_t* checksum) {
  const UniqueFd fd(OpenBeneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return Status::System(errno, Printable(name));
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) {
    return Status::System(errno, Printable(name));
  }
  if (!holes->Take(st)) return std::string(kNotRead);
  Sha256 hash;
  std::vector<std::byte> bytes(size_t{1} << 16);
  while (true) {
    const ssize_t n = ::read(fd.get(), bytes.data(), bytes.size());
    if (n < 0) return Status::System(errno, Printable(name));
    if (n == 0) return "sha256=" + HexOf(hash);
    const ByteSpan got = ByteSpan(bytes).first(static_cast<size_t>(n));
    hash.Update(got);
    *checksum = Crc32c(got, *checksum);
  }
}

class Walk {
 public:
  Walk(const DigestOptions& options, dev_t device, TreeDigest* digest)
      : options_(options), device_(device), digest_(digest) {}

  // Takes `fd`.
  Status Into(UniqueFd fd, const std::string& prefix, size_t depth) {
    if (depth > kDeepest) return Status::Corrupt(prefix + ": too deep");
    DIR* const dir = ::fdopendir(fd.get());
    if (dir == nullptr) return Status::System(errno, Printable(prefix));
    const int at = fd.Release();
    std::vector<std::string> names;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());
    Status status;
    for (const std::string& name : names) {
      status = Entry(at, name, prefix + name, depth);
      if (!status.ok()) break;
    }
    ::closedir(dir);
    return status;
  }

 private:
  Status Entry(int dir, const std::string& name, std::string path,
               size_t depth) {
    struct stat st;
    if (::fstatat(dir, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      return Status::System(errno, Printable(path));
    }
    if (depth == 0 && name == "lost+found" && st.st_uid == 0) return {};
    DigestLine line;
    line.path = std::move(path);
    line.mode = st.st_mode;
    line.uid = st.st_uid;
    line.gid = st.st_gid;
    line.has_owner = options_.owners;
    line.links = S_ISDIR(st.st_mode) ? 0 : st.st_nlink;
    line.size = S_ISREG(st.st_mode) ? static_cast<uint64_t>(st.st_size) : 0;
    line.contents = kNotRead;
    if (S_ISLNK(st.st_mode)) {
      line.mode = S_IFLNK | 0777;
      std::array<char, 4097> target;
      const ssize_t n =
          ::readlinkat(dir, name.c_str(), target.data(), target.size() - 1);
      if (n < 0) return Status::System(errno, Printable(line.path));
      Sha256 hash;
      hash.Update(AsBytes({target.data(), static_cast<size_t>(n)}));
      line.contents = "target=" + HexOf(hash);
    } else if (S_ISREG(st.st_mode) && options_.contents) {
      Result<std::string> hash = HashFile(dir, name, &holes_, &line.checksum);
      if (!hash.ok()) return hash.status();
      line.contents = *std::move(hash);
    } else if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
      line.contents = "rdev=" + std::to_string(major(st.st_rdev)) + ":" +
                      std::to_string(minor(st.st_rdev));
    }
    const std::string below = line.path + "/";
    const bool is_dir = S_ISDIR(st.st_mode) && st.st_dev == device_;
    digest_->lines.push_back(std::move(line));
    if (!is_dir) return {};
    UniqueFd fd(OpenBeneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    if (!fd) return Status::System(errno, Printable(below));
    return Into(std::move(fd), below, depth + 1);
  }

  const DigestOptions options_;
  const dev_t device_;
  TreeDigest* const digest_;
  HoleBudget holes_;
};

// Bytes that would end a line, or a name, are spelled as %XX.
std::string EscapedPath(std::string_view path) {
  std::string text;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == '%' || byte == 0x7f) {
      constexpr char kDigits[] = "0123456789ABCDEF";
      text += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      text.push_back(c);
    }
  }
  return text;
}

std::string UnescapedPath(std::string_view text) {
  std::string path;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16).ptr ==
            &text[i + 1] + 2) {
      path.push_back(static_cast<char>(byte));
      i += 2;
    } else {
      path.push_back(text[i]);
    }
  }
  return path;
}

std::string Octal(uint32_t mode) {
  std::array<char, 16> text;
  return {text.data(),
          std::to_chars(text.data(), text.data() + text.size(), mode, 8).ptr};
}

std::string HashOf(const std::vector<DigestLine>& lines) {
  Sha256 hash;
  for (const DigestLine& line : lines) hash.Update(AsBytes(line.Text() + "\n"));
  return HexOf(hash);
}

void SortLines(TreeDigest* digest) {
  std::sort(
      digest->lines.begin(), digest->lines.end(),
      [](const DigestLine& a, const DigestLine& b) { return a.path < b.path; });
}

// Collects what differs, and counts beyond.
class Differences {
 public:
  explicit Differences(size_t most) : most_(most) {}
  void Add(const std::string& path, const std::string& what) {
    ++count_;
    if (texts_.size() < most_) texts_.push_back(Printable(path) + ": " + what);
  }
  std::vector<std::string> Take(uint64_t* count) {
    *count = count_;
    return std::move(texts_);
  }

 private:
  const size_t most_;
  uint64_t count_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace

std::string DigestLine::Text() const {
  return Octal(mode) + " " +
         (has_owner ? std::to_string(uid) + ":" + std::to_string(gid) : "-") +
         " " + std::to_string(links) + " " + std::to_string(size) + " " +
         contents + "  " + EscapedPath(path);
}

std::string TreeDigest::Text() const {
  std::string text;
  for (const DigestLine& line : lines) text += line.Text() + "\n";
  return text + "tree sha256=" + hash + "\n";
}

Result<TreeDigest> DigestTree(int root, const DigestOptions& options) {
  struct stat st;
  if (::fstatat(root, "", &st, AT_EMPTY_PATH) != 0) {
    return Status::System(errno, "digest");
  }
  UniqueFd fd(OpenBeneath(root, ".", O_RDONLY | O_DIRECTORY));
  if (!fd) return Status::System(errno, "digest");
  TreeDigest digest;
  if (Status s = Walk(options, st.st_dev, &digest).Into(std::move(fd), "", 0);
      !s.ok()) {
    return s.Prefixed("digest");
  }
  SortLines(&digest);
  digest.hash = HashOf(digest.lines);
  return digest;
}

Result<TreeDigest> ParseDigest(std::string_view text) {
  TreeDigest digest;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.starts_with("tree sha256=")) {
      digest.hash = line.substr(12);
      continue;
    }
    const auto bad = [&] {
      return Status::Corrupt("digest: line " + std::to_string(number) +
                             " is none; tracefs-replay --digest DIR makes one");
    };
    const auto take = [&] {
      const size_t blank = std::min(line.find(' '), line.size());
      const std::string_view word = line.substr(0, blank);
      line.remove_prefix(std::min(blank + 1, line.size()));
      return word;
    };
    const auto number_of = [](std::string_view word, auto* value, int base) {
      const auto [end_of, error] =
          std::from_chars(word.data(), word.data() + word.size(), *value, base);
      return error == std::errc() && end_of == word.data() + word.size();
    };
    DigestLine entry;
    if (!number_of(take(), &entry.mode, 8)) return bad();
    const std::string_view owner = take();
    const size_t colon = owner.find(':');
    entry.has_owner = owner != "-";
    if (entry.has_owner &&
        (colon == owner.npos ||
         !number_of(owner.substr(0, colon), &entry.uid, 10) ||
         !number_of(owner.substr(colon + 1), &entry.gid, 10))) {
      return bad();
    }
    if (!number_of(take(), &entry.links, 10)) return bad();
    if (!number_of(take(), &entry.size, 10)) return bad();
    entry.contents = take();
    if (entry.contents.empty() || !take().empty() || line.empty()) return bad();
    entry.path = UnescapedPath(line);
    digest.lines.push_back(std::move(entry));
  }
  SortLines(&digest);
  const auto twice = std::adjacent_find(
      digest.lines.begin(), digest.lines.end(),
      [](const auto& a, const auto& b) { return a.path == b.path; });
  if (twice != digest.lines.end()) {
    return Status::Corrupt("digest: '" + EscapedPath(twice->path) +
                           "' is there twice");
  }
  const std::string hash = HashOf(digest.lines);
  if (!digest.hash.empty() && digest.hash != hash) {
    return Status::Corrupt("digest: its lines do not give its hash");
  }
  digest.hash = hash;
  return digest;
}

std::vector<std::string> CompareDigests(const TreeDigest& expected,
                                        const TreeDigest& found, size_t most,
                                        uint64_t* count) {
  Differences differences(most);
  auto a = expected.lines.begin();
  auto b = found.lines.begin();
  while (a != expected.lines.end() || b != found.lines.end()) {
    if (b == found.lines.end() ||
        (a != expected.lines.end() && a->path < b->path)) {
      differences.Add(a->path, "missing");
      ++a;
    } else if (a == expected.lines.end() || b->path < a->path) {
      differences.Add(b->path, "not expected");
      ++b;
    } else {
      if (a->mode != b->mode) {
        differences.Add(a->path, "mode " + Octal(b->mode) + " instead of " +
                                     Octal(a->mode));
      } else if (a->has_owner && b->has_owner &&
                 (a->uid != b->uid || a->gid != b->gid)) {
        differences.Add(a->path, "another owner");
      } else if (a->size != b->size) {
        differences.Add(a->path, "size " + std::to_string(b->size) +
                                     " instead of " + std::to_string(a->size));
      } else if (a->links != b->links) {
        differences.Add(a->path, "links " + std::to_string(b->links) +
                                     " instead of " + std::to_string(a->links));
      } else if (a->contents != b->contents && a->contents != "-" &&
                 b->contents != "-") {
        differences.Add(a->path, "other contents");
      }
      ++a;
      ++b;
    }
  }
  return differences.Take(count);
}

Result<std::map<std::string, TreeEntry>> ExpectedOf(int plan) {
  // What the trace says counts more than what was worked out from it.
  const auto merge = [](TreeEntry entry, TreeEntry* into) {
    if (into->Knows(TreeEntry::kRecorded)) std::swap(entry, *into);
    const uint32_t both =
        (entry.known | into->known) &
        (TreeEntry::kComplete | TreeEntry::kAllBytes | TreeEntry::kMadeUp);
    *into = std::move(entry);
    into->known |= both;
  };
  std::map<std::string, TreeEntry> expected;
  PlanReader reader(plan, ChunkKind::kFinal);
  while (true) {
    auto chunk = reader.Next();
    if (!chunk.ok()) return chunk.status();
    if (!*chunk) return expected;
    for (size_t at = 0; at < (*chunk)->size();) {
      TreeEntry entry;
      size_t size = 0;
      if (Status s =
              DecodeEntry(ByteSpan(**chunk).subspan(at), true, &entry, &size);
          !s.ok()) {
        return s;
      }
      at += size;
      const auto [place, is_new] = expected.try_emplace(entry.name, entry);
      if (!is_new) merge(std::move(entry), &place->second);
    }
  }
}

namespace {

std::string HashOfText(std::string_view text) {
  Sha256 hash;
  hash.Update(AsBytes(text));
  return HexOf(hash);
}

// What the first difference is, but for contents; empty: none.
std::string WhatDiffers(const TreeEntry& entry, const DigestLine& line,
                        const DigestOptions& options) {
  const bool is_file = S_ISREG(entry.mode);
  if ((entry.mode & S_IFMT) != (line.mode & S_IFMT)) {
    const bool device = S_ISCHR(entry.mode) || S_ISBLK(entry.mode);
    return device ? "" : "another type";
  }
  const uint32_t bits = options.set_id ? 07777 : 07777 & ~kSetIdBits;
  if (entry.Knows(TreeEntry::kMode) && !S_ISLNK(entry.mode) &&
      (entry.mode & bits) != (line.mode & bits)) {
    return "mode " + Octal(line.mode) + " instead of " + Octal(entry.mode);
  }
  if (options.owners && entry.Knows(TreeEntry::kOwner) &&
      (entry.uid != line.uid || entry.gid != line.gid)) {
    return "another owner";
  }
  if (is_file && entry.Knows(TreeEntry::kSize) && entry.size != line.size) {
    return "size " + std::to_string(line.size) + " instead of " +
           std::to_string(entry.size);
  }
  if (entry.Knows(TreeEntry::kTarget) &&
      line.contents != "target=" + HashOfText(entry.target)) {
    return "leads elsewhere";
  }
  return "";
}

enum class Contents : uint8_t { kSame, kOther, kMadeUp, kNotCompared };

Contents CompareContents(const TreeEntry& entry, const DigestLine& line,
                         const DigestOptions& options) {
  const bool is_file = S_ISREG(entry.mode) && S_ISREG(line.mode);
  if (!is_file || !options.contents || !options.recorded_bytes) {
    return Contents::kSame;
  }
  if (line.contents == kNotRead) return Contents::kNotCompared;
  if (entry.Knows(TreeEntry::kChecksum)) {
    if (entry.checksum == line.checksum) return Contents::kSame;
    return entry.Knows(TreeEntry::kAllBytes) || !options.prepared
               ? Contents::kOther
               : Contents::kMadeUp;
  }
  if (!entry.Knows(TreeEntry::kMadeUp)) return Contents::kSame;
  return options.prepared ? Contents::kMadeUp : Contents::kNotCompared;
}

}  // namespace

Result<PlanComparison> CompareWithPlan(int plan, const TreeDigest& found,
                                       const DigestOptions& options,
                                       bool others, size_t most) {
  auto expected = ExpectedOf(plan);
  if (!expected.ok()) return expected.status();
  PlanComparison result;
  Differences differences(most);
  for (const DigestLine& line : found.lines) {
    const auto at = expected->find(line.path);
    if (at == expected->end()) {
      if (!others) differences.Add(line.path, "not expected");
      continue;
    }
    const std::string what = WhatDiffers(at->second, line, options);
    const Contents contents = CompareContents(at->second, line, options);
    if (!what.empty()) {
      differences.Add(line.path, what);
    } else if (contents == Contents::kOther) {
      differences.Add(line.path, "other contents");
    }
    if (contents == Contents::kNotCompared) ++result.not_compared;
    if (contents == Contents::kMadeUp && ++result.made_up_count <= most) {
      result.made_up.push_back(Printable(line.path));
    }
    expected->erase(at);
  }
  for (const auto& [path, entry] : *expected) differences.Add(path, "missing");
  result.differences = differences.Take(&result.difference_count);
  return result;
}

}  // namespace tracefs::replay

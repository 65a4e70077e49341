#include "tracefs/survive/inheritance.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <span>
#include <utility>

#include "tracefs/base/bytes.h"
#include "tracefs/base/hex.h"

namespace tracefs::survive {
namespace {

constexpr std::string_view kVariable = "TRACEFS_INHERITANCE_";
// The kernel takes no longer ones than 128 KiB.
constexpr size_t kMostInOne = 100'000;
constexpr size_t kMostVariables = 1000;
constexpr std::string_view kFile = "file.";

// "NUMBER DEVICE INODE" of a descriptor; empty: it is none.
std::string Described(int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return {};
  return std::to_string(fd) + ' ' + std::to_string(st.st_dev) + ' ' +
         std::to_string(st.st_ino);
}

int NumberIn(std::string_view described) {
  int fd = -1;
  std::from_chars(described.data(), described.data() + described.size(), fd);
  return fd;
}

}  // namespace

std::optional<Inheritance> Inheritance::OfProcess() {
  std::string all;
  bool any = false;
  for (size_t i = 0; i < kMostVariables; ++i) {
    const std::string name = std::string(kVariable) + std::to_string(i);
    const char* const part = ::secure_getenv(name.c_str());
    if (part == nullptr) break;
    any = true;
    all += part;
    ::unsetenv(name.c_str());
  }
  if (!any) return std::nullopt;
  // One that makes no sense has no word on its kind: it is refused later.
  Inheritance made;
  std::string_view rest = all;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    const size_t equals = line.find('=');
    if (equals == line.npos) continue;
    const std::string_view digits = line.substr(equals + 1);
    std::string text(digits.size() / 2, '\0');
    if (FromHex(digits, std::as_writable_bytes(std::span(text)))) {
      made.texts_.emplace(line.substr(0, equals), std::move(text));
    }
  }
  return made;
}

void Inheritance::Set(std::string_view name, std::string_view text) {
  texts_.insert_or_assign(std::string(name), std::string(text));
}

void Inheritance::SetNumber(std::string_view name, uint64_t number) {
  Set(name, std::to_string(number));
}

Status Inheritance::SetFile(std::string_view name, int fd) {
  const std::string described = Described(fd);
  if (described.empty()) return Status::System(errno, std::string(name));
  Set(std::string(kFile) + std::string(name), described);
  return Status::Ok();
}

std::string Inheritance::Text(std::string_view name) const {
  const auto found = texts_.find(name);
  return found == texts_.end() ? std::string() : found->second;
}

uint64_t Inheritance::Number(std::string_view name) const {
  const std::string text = Text(name);
  uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Result<int> Inheritance::File(std::string_view name) const {
  const std::string described = Text(std::string(kFile) + std::string(name));
  const int fd = NumberIn(described);
  if (fd < 0 || Described(fd) != described) {
    return Status::SystemSaid(EUCLEAN,
                              "the descriptor of '" + std::string(name) +
                                  "' is not the one that was handed over");
  }
  return fd;
}

std::vector<int> Inheritance::Files() const {
  std::vector<int> files;
  for (auto at = texts_.lower_bound(kFile);
       at != texts_.end() && at->first.starts_with(kFile); ++at) {
    files.push_back(NumberIn(at->second));
  }
  return files;
}

std::vector<std::string> Inheritance::Variables() const {
  std::string all;
  for (const auto& [name, text] : texts_) {
    all += name + '=' + Hex(AsBytes(text)) + '\n';
  }
  std::vector<std::string> variables;
  for (size_t at = 0; at < all.size() || variables.empty(); at += kMostInOne) {
    variables.push_back(std::string(kVariable) +
                        std::to_string(variables.size()) + '=' +
                        all.substr(at, kMostInOne));
  }
  return variables;
}

}  // namespace tracefs::survive

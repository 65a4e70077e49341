#include "tracefs/event/event.h"

#include <algorithm>
#include <cstring>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

// Deeper trees than PATH_MAX allows do exist; a cycle must not hang us either.
constexpr int kMaxDepth = 2048;

// Writes from the end of a buffer towards its front.
class BackwardWriter {
 public:
  explicit BackwardWriter(PathBuffer& buffer)
      : begin_(buffer.bytes.data()),
        end_(begin_ + buffer.bytes.size()),
        front_(end_) {}

  // Puts '/' and `name` in front of what is there; false when it is full.
  bool Prepend(std::string_view name) {
    if (static_cast<size_t>(front_ - begin_) < name.size() + 1) return false;
    front_ -= name.size();
    std::memcpy(front_, name.data(), name.size());
    *--front_ = '/';
    return true;
  }
  std::string_view view() const {
    return {front_, static_cast<size_t>(end_ - front_)};
  }

 private:
  char* begin_;
  char* end_;
  char* front_;
};

}  // namespace

void NameBuffer::Set(std::string_view name) {
  size = static_cast<uint16_t>(std::min(name.size(), bytes.size()));
  std::memcpy(bytes.data(), name.data(), size);
}

void Event::SetAttributes(const struct stat& st) {
  Set(Field::kInode, st.st_ino);
  Set(Field::kType, (st.st_mode & S_IFMT) >> 12);
  Set(Field::kMode, st.st_mode);
  Set(Field::kNlink, st.st_nlink);
  Set(Field::kSize, static_cast<uint64_t>(st.st_size));
  Set(Field::kFuid, st.st_uid);
  Set(Field::kFgid, st.st_gid);
  Set(Field::kMtime, NsOf(st.st_mtim));
  attributes_resolved = true;
}

void Event::SetResult(int64_t result, int error) {
  Set(Field::kResult, static_cast<uint64_t>(error == 0 ? result : -1));
  Set(Field::kErrno, static_cast<uint64_t>(error));
}

std::string_view PathOf(EventResolver& resolver, uint64_t node,
                        std::string_view name, PathBuffer& buffer) {
  BackwardWriter path(buffer);
  if (!name.empty() && !path.Prepend(name)) return path.view();
  NodeLink link;
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    if (!resolver.LinkOf(node, &link)) return depth == 0 ? "" : path.view();
    if (link.parent == 0) {  // the root
      if (path.view().empty()) path.Prepend("");
      return path.view();
    }
    if (!path.Prepend(link.name.view())) return path.view();
    node = link.parent;
  }
  return path.view();
}

std::string_view PathOf(const Event& event, PathBuffer& buffer) {
  if (event.resolver == nullptr) return {};
  if (event.parent != 0) {
    return PathOf(*event.resolver, event.parent, event.name, buffer);
  }
  if (event.node == 0) return {};
  return PathOf(*event.resolver, event.node, {}, buffer);
}

std::string_view NewPathOf(const Event& event, PathBuffer& buffer) {
  if (event.resolver == nullptr || event.new_parent == 0) return {};
  return PathOf(*event.resolver, event.new_parent, event.new_name, buffer);
}

std::string_view ExtensionOf(std::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  return name.substr(dot + 1);
}

}  // namespace tracefs

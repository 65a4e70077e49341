#include "tracefs/build/pipe_matcher.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>

#include "tracefs/base/text.h"

namespace tracefs::build {
namespace {

constexpr uint32_t kStdin = 0;
constexpr uint32_t kStdout = 1;

// Whether the command line has the descriptor as the name of a file. The
// standard ones are what they are without that.
bool Names(const Image& image, uint32_t fd) {
  if (fd <= 2) return false;
  const std::string number = std::to_string(fd);
  const auto names = [&](std::string_view word, std::string_view folder) {
    for (size_t at = word.find(folder); at != word.npos;
         at = word.find(folder, at + 1)) {
      const std::string_view rest = word.substr(at + folder.size());
      if (rest.substr(0, rest.find_first_not_of(kDecimalDigits)) == number) {
        return true;
      }
    }
    return false;
  };
  return std::ranges::any_of(image.argv, [&](std::string_view word) {
    return names(word, "/dev/fd/") || names(word, "/proc/self/fd/");
  });
}

auto Order(const PipeEdge& edge) {
  return std::make_tuple(edge.writer.id, edge.reader.id);
}

}  // namespace

void PipeMatcher::ExecutionBegan(const Process& process) {
  if (process.now.index == 0) forks_[process.id] = process.now.id;
}

void PipeMatcher::Add(const Process& process, std::span<const PipeEnd> pipes) {
  for (const PipeEnd& pipe : pipes) {
    const auto fork = forks_.find(process.id);
    End end = {.execution = {process.id, process.now.index, process.now.id},
               .parent = {process.parent, process.parent_index,
                          process.parent_execution},
               .fd = pipe.fd,
               .forked_too = process.now.index == 1 && fork != forks_.end(),
               .fork = fork == forks_.end() ? kNobody : fork->second,
               .both = false,
               .named = Names(*process.now.image, pipe.fd)};
    for (const PipeEnd& other : pipes) {
      end.both |= other.inode == pipe.inode && other.access != pipe.access;
    }
    Pipe& all = pipes_[pipe.inode];
    if (pipe.access != PipeEnd::kRead) all.writers.push_back(end);
    if (pipe.access != PipeEnd::kWrite) all.readers.push_back(end);
  }
}

std::vector<PipeEdge> PipeMatcher::Match() {
  std::vector<PipeEdge> edges;
  const auto add = [&](const End& writer, const End& reader) {
    if (writer.execution.process == reader.execution.process) return;
    edges.push_back({writer.execution, reader.execution});
    // At each exec CAS looks at what the other one is just then: as it was
    // forked, if its own exec comes later.
    const ExecutionId w = writer.execution.id;
    const ExecutionId r = reader.execution.id;
    if (reader.forked_too && reader.fork < w && w < r) {
      edges.push_back(
          {writer.execution, {reader.execution.process, 0, reader.fork}});
    }
    if (writer.forked_too && writer.fork < r && r < w) {
      edges.push_back(
          {{writer.execution.process, 0, writer.fork}, reader.execution});
    }
  };
  crowded_ = 0;
  for (const auto& [inode, pipe] : pipes_) {
    if (pipe.writers.size() * pipe.readers.size() > kMostPairs ||
        edges.size() > kMostEdges) {
      ++crowded_;
      continue;
    }
    for (const End& writer : pipe.writers) {
      // A job server's pipe: all hold both ends and pass tokens through it.
      if (writer.both && writer.fd > 2) continue;
      bool read = false;
      for (const End& reader : pipe.readers) {
        const bool to_parent =
            reader.execution.process == writer.execution.process
                ? false
                : reader.execution.process == writer.parent.process;
        const bool in_line =
            (reader.fd == kStdin || reader.named) &&
            (writer.fd == kStdout || writer.fd == 2 || writer.named);
        if (to_parent || in_line) add(writer, reader);
        read = true;
      }
      // A pipe that the parent holds as well was handed down to both.
      const bool inherited = std::any_of(
          pipe.writers.begin(), pipe.writers.end(), [&](const End& other) {
            return other.execution.process == writer.parent.process;
          });
      if (!read && !inherited && writer.fd <= 2 &&
          writer.parent.process != kNobody) {
        edges.push_back({writer.execution, writer.parent});
      }
    }
  }
  std::sort(
      edges.begin(), edges.end(),
      [](const PipeEdge& a, const PipeEdge& b) { return Order(a) < Order(b); });
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

}  // namespace tracefs::build

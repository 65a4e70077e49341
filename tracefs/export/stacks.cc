#include "tracefs/export/stacks.h"

#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/base/version.h"
#include "tracefs/tally/transfer.h"
#include "tracefs/text/escape.h"
#include "tracefs/text/json_writer.h"

namespace tracefs {
namespace {

enum class Weight : uint8_t { kTime, kBytes, kOperations };

Weight WeightOf(const ExportOptions& options) {
  const std::string_view word = options.Choice("weight");
  if (word == "bytes") return Weight::kBytes;
  return word == "operations" ? Weight::kOperations : Weight::kTime;
}

constexpr std::string_view kOtherFrame = "(other)";
constexpr uint32_t kNone = UINT32_MAX;

// A tree of frames; a frame is the name of its own and that of its parent.
class StackTree {
 public:
  StackTree() { nodes_.push_back({}); }

  // The child of that name; the one for others if there is no more room.
  uint32_t Child(uint32_t parent, std::string_view name) {
    if (const auto found = children_.find({parent, name});
        found != children_.end()) {
      return found->second;
    }
    if (nodes_.size() >= kMaxStackNodes && name != kOtherFrame) {
      return Child(parent, kOtherFrame);
    }
    const std::string_view kept = Intern(name);
    const auto number = static_cast<uint32_t>(nodes_.size());
    nodes_.push_back({.parent = parent, .name = kept});
    children_.emplace(Key{parent, kept}, number);
    return number;
  }
  void Add(uint32_t node, uint64_t weight) { nodes_[node].weight += weight; }

  struct Node {
    uint32_t parent = kNone;
    std::string_view name{};
    uint64_t weight = 0;  // of its own
  };
  const std::vector<Node>& nodes() const { return nodes_; }

 private:
  struct Key {
    uint32_t parent;
    std::string_view name;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<std::string_view>()(key.name) * 31 +
             key.parent * size_t{0x9e3779b97f4a7c15};
    }
  };

  std::string_view Intern(std::string_view name) {
    const auto found = names_.find(name);
    if (found != names_.end()) return found->first;
    const std::string_view kept = texts_.emplace_back(name);
    names_.emplace(kept, true);
    return kept;
  }

  std::vector<Node> nodes_;
  std::unordered_map<Key, uint32_t, Hash> children_;
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, bool> names_;
};

class StackExporter : public Exporter {
 public:
  StackExporter(OutputBuffer& out, const ExportOptions& options)
      : out_(out), weight_(WeightOf(options)) {}

  void Write(const format::Record& record) override {
    const Event& event = record.event;
    if (event.before) return;  // it is reported again when it has run
    uint64_t weight = 1;
    if (weight_ == Weight::kTime) {
      weight = event.GetOr0(Field::kLatency);
    } else if (weight_ == Weight::kBytes) {
      weight = tally::BytesOf(event).moved();
    }
    if (weight == 0) return;
    tree_.Add(StackOf(record), weight);
  }

 protected:
  OutputBuffer& out() { return out_; }
  const StackTree& tree() const { return tree_; }
  std::string_view unit() const {
    return weight_ == Weight::kTime    ? "nanoseconds"
           : weight_ == Weight::kBytes ? "bytes"
                                       : "none";
  }

 private:
  uint32_t StackOf(const format::Record& record) {
    const TableRow row(record);
    const Event& event = record.event;
    name_ = record.HasText(Field::kComm) ? record.Text(Field::kComm) : "-";
    if (event.Has(Field::kPid)) {
      name_ += '[' + std::to_string(event.Get(Field::kPid)) + ']';
    } else if (event.Has(Field::kTid)) {
      name_ += "[/" + std::to_string(event.Get(Field::kTid)) + ']';
    }
    uint32_t node = tree_.Child(0, name_);
    std::string_view path = row.path();
    if (path.empty()) {
      if (!event.name.empty()) {
        node = tree_.Child(node, event.name);
      } else if (event.Has(Field::kInode)) {
        node = tree_.Child(node,
                           "inode:" + std::to_string(event.Get(Field::kInode)));
      }
    } else {
      node = tree_.Child(node, "/");
      path.remove_prefix(path.starts_with('/') ? 1 : 0);
    }
    while (!path.empty()) {
      const size_t slash = std::min(path.find('/'), path.size());
      // A directory keeps its slash: it is told from a file.
      const bool directory = slash != path.size();
      name_ = path.substr(0, slash + (directory ? 1 : 0));
      node = tree_.Child(node, name_);
      path.remove_prefix(slash + (directory ? 1 : 0));
    }
    name_ = OpName(event.op);
    return tree_.Child(node, name_);
  }

  OutputBuffer& out_;
  const Weight weight_;
  StackTree tree_;
  std::string name_;
};

class FoldedExporter final : public StackExporter {
 public:
  using StackExporter::StackExporter;

  void Finish() override {
    std::vector<uint32_t> stack;
    std::string line;
    const auto& nodes = tree().nodes();
    for (uint32_t n = 1; n < nodes.size(); ++n) {
      if (nodes[n].weight == 0) continue;
      stack.clear();
      for (uint32_t at = n; at != 0; at = nodes[at].parent) {
        stack.push_back(at);
      }
      line.clear();
      for (size_t i = stack.size(); i-- > 0;) {
        AppendFrame(nodes[stack[i]].name, &line);
        line += i == 0 ? ' ' : ';';
      }
      line += std::to_string(nodes[n].weight);
      line += '\n';
      out().Append(line);
    }
  }

 private:
  // Frames end at ; and lines at their last blank.
  static void AppendFrame(std::string_view name, std::string* line) {
    for (const char c : TerminalText(name)) {
      if (c == ';') {
        *line += "\\x3b";
      } else if (c == ' ') {
        *line += "\\x20";
      } else {
        *line += c;
      }
    }
  }
};

class SpeedscopeExporter final : public StackExporter {
 public:
  using StackExporter::StackExporter;

  void Summarize(const ExportSummary& summary) override {
    for (const format::TraceContext* trace : summary.traces) {
      name_ += (name_.empty() ? "" : ", ") + trace->name;
      for (const auto& [reason, count] : trace->stats.losses) {
        name_ += " (" + std::to_string(count) +
                 " operations not recorded: " + reason + ")";
      }
    }
  }

  void Finish() override {
    const auto& nodes = tree().nodes();
    std::map<std::string_view, size_t> frames;
    std::string text =
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
        "\"exporter\":\"tracefs-dump " +
        std::string(kVersion) + "\",\"name\":";
    AppendJsonString(TerminalText(name_), &text);
    text += ",\"activeProfileIndex\":0,\"shared\":{\"frames\":[";
    std::vector<size_t> frame_of(nodes.size());
    for (size_t n = 1; n < nodes.size(); ++n) {
      const auto [place, is_new] = frames.emplace(nodes[n].name, frames.size());
      frame_of[n] = place->second;
      if (!is_new) continue;
      text += frames.size() == 1 ? "{\"name\":" : ",{\"name\":";
      AppendJsonString(TerminalText(nodes[n].name), &text);
      text += '}';
      Spill(&text);
    }
    uint64_t total = 0;
    text += "]},\"profiles\":[{\"type\":\"sampled\",\"name\":";
    AppendJsonString("process > path > operation", &text);
    text += ",\"unit\":\"" + std::string(unit()) + "\",\"samples\":[";
    bool first = true;
    std::vector<size_t> stack;
    for (uint32_t n = 1; n < nodes.size(); ++n) {
      if (nodes[n].weight == 0) continue;
      total += nodes[n].weight;
      stack.clear();
      for (uint32_t at = n; at != 0; at = nodes[at].parent) {
        stack.push_back(frame_of[at]);
      }
      text += first ? "[" : ",[";
      first = false;
      for (size_t i = stack.size(); i-- > 0;) {
        text += std::to_string(stack[i]);
        if (i != 0) text += ',';
      }
      text += ']';
      Spill(&text);
    }
    text += "],\"weights\":[";
    first = true;
    for (uint32_t n = 1; n < nodes.size(); ++n) {
      if (nodes[n].weight == 0) continue;
      if (!first) text += ',';
      first = false;
      text += std::to_string(nodes[n].weight);
      Spill(&text);
    }
    text +=
        "],\"startValue\":0,\"endValue\":" + std::to_string(total) + "}]}\n";
    out().Append(text);
  }

 private:
  void Spill(std::string* text) {
    if (text->size() < size_t{1} << 16) return;
    out().Append(*text);
    text->clear();
  }

  std::string name_;
};

}  // namespace

std::unique_ptr<Exporter> MakeFoldedExporter(OutputBuffer& out,
                                             const ExportOptions& options) {
  return std::make_unique<FoldedExporter>(out, options);
}

std::unique_ptr<Exporter> MakeSpeedscopeExporter(OutputBuffer& out,
                                                 const ExportOptions& options) {
  return std::make_unique<SpeedscopeExporter>(out, options);
}

}  // namespace tracefs

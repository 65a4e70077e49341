#include "tracefs/report/flame.h"

#include <utility>

#include "tracefs/base/thread.h"

namespace tracefs::report {
namespace {

constexpr NameTree::Limits kFlameLimits = {
    .nodes = 1 << 17, .name_bytes = size_t{32} << 20, .series_points = 1 << 19};

}  // namespace

Flame::Flame() : batch_(std::make_unique<Batch>()), tree_(kFlameLimits) {}

Flame::~Flame() {
  if (thread_.joinable()) End();
}

uint32_t Flame::LineOf(const NameTree& tree, NodeId node,
                       std::vector<Written>* written) {
  if (node >= written->size()) written->resize(node + 1);
  Written& it = (*written)[node];
  if (it.batch == batches_) return it.line;
  it = {batches_, static_cast<uint32_t>(batch_->lines.size())};
  line_.clear();
  for (NodeId at = node; at != 0; at = tree.at(at).parent) line_.push_back(at);
  for (size_t i = line_.size(); i-- > 0;) {
    batch_->bytes += tree.NameOf(line_[i]);
    batch_->ends.push_back(static_cast<uint32_t>(batch_->bytes.size()));
  }
  batch_->lines.push_back(static_cast<uint32_t>(batch_->ends.size()));
  return it.line;
}

void Flame::Add(const NameTree& commands, NodeId command, const NameTree& files,
                NodeId file, Op op, const tally::Sums& what, uint64_t real_ns,
                int shift) {
  // One after the other: where they stand depends on it.
  const uint32_t command_line = LineOf(commands, command, &command_lines_);
  const uint32_t file_line = LineOf(files, file, &file_lines_);
  batch_->steps.push_back({.command = command,
                           .file = file,
                           .command_line = command_line,
                           .file_line = file_line,
                           .op = op,
                           .shift = shift,
                           .real_ns = real_ns,
                           .what = what});
  if (batch_->steps.size() == kSteps || batch_->bytes.size() >= kBytes) {
    HandOn();
  }
}

void Flame::Renumber() {
  HandOn();
  batch_->renumbered = true;
  command_lines_.clear();
  file_lines_.clear();
}

void Flame::HandOn() {
  if (!thread_.joinable() && !StartThread(
                                  "flame", [this] { Work(); }, &thread_)
                                  .ok()) {
    Take(*batch_);
  } else {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return waiting_.size() < kAhead || failed_ != nullptr;
    });
    if (failed_ != nullptr) std::rethrow_exception(failed_);
    waiting_.push_back(std::move(batch_));
  }
  changed_.notify_all();
  batch_ = std::make_unique<Batch>();
  ++batches_;
}

void Flame::End() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

NameTree& Flame::Tree() {
  if (thread_.joinable()) {
    HandOn();
    End();
    if (failed_ != nullptr) std::rethrow_exception(failed_);
  } else if (!batch_->steps.empty()) {
    Take(*batch_);  // too few to begin a thread for
    batch_->steps.clear();
  }
  return tree_;
}

void Flame::Work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ended_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::unique_ptr<Batch> batch = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    changed_.notify_all();
    std::exception_ptr failed;
    try {
      Take(*batch);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.lock();
    if (failed == nullptr) continue;
    failed_ = failed;
    changed_.notify_all();
    return;
  }
}

void Flame::Take(const Batch& batch) {
  if (batch.renumbered) recent_.Clear();
  for (const Step& step : batch.steps) {
    const NodeId* const known =
        recent_.Find(step.command, Index(step.op), step.file);
    const NodeId node = known != nullptr ? *known : NodeOf(batch, step);
    if (step.real_ns != 0) {
      tree_.Add(node, step.what, step.real_ns, {.shift = step.shift});
    } else {
      tree_.Add(node, step.what);
    }
    if (tree_.HasTooManyPoints()) tree_.DropSeries();
    if (!tree_.IsFull()) continue;
    tree_.Fold();
    recent_.Clear();
  }
}

NodeId Flame::NodeOf(const Batch& batch, const Step& step) {
  const auto name_at = [&batch](uint32_t i) {
    const uint32_t begin = i == 0 ? 0 : batch.ends[i - 1];
    return std::string_view(batch.bytes).substr(begin, batch.ends[i] - begin);
  };
  const auto begin_of = [&batch](uint32_t line) {
    return line == 0 ? 0 : batch.lines[line - 1];
  };
  NodeId node = tree_.Child(0, name_at(begin_of(step.command_line)));
  node = tree_.Child(node, "/");
  const uint32_t end = batch.lines[step.file_line];
  for (uint32_t i = begin_of(step.file_line); i != end; ++i) {
    name_ = name_at(i);
    // A directory that leads on keeps its slash.
    if (i + 1 != end) name_ += '/';
    node = tree_.Child(node, name_);
  }
  node = tree_.Child(node, OpName(step.op));
  recent_.Keep(step.command, Index(step.op), step.file, node);
  return node;
}

}  // namespace tracefs::report

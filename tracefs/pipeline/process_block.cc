#include "tracefs/pipeline/process_block.h"

#include <algorithm>
#include <utility>

#include "tracefs/format/process_message.h"

namespace tracefs {
namespace {

// Besides the texts and pipes of a record: headers and numbers.
constexpr size_t kFixedBytes = 1024;
constexpr size_t kPipeBytes = 13;
// The longest list of arguments that the kernel takes is 6 MiB (a fourth of the
// stack's limit, and that at most 8 MiB by default); longer ones are cut.
constexpr size_t kMaxListBytes = size_t{8} << 20;

size_t RoomFor(const ProcessRecord& r) {
  return kFixedBytes + r.program.size() + r.exe.size() + r.cwd.size() +
         r.argv.size() + r.environ.size() + r.comm.size() + r.cgroup.size() +
         r.pipes.size() * kPipeBytes;
}

}  // namespace

ProcessBlock::ProcessBlock(size_t block_bytes, bool environment,
                           LossCounter& losses, Submit submit)
    : environment_(environment),
      losses_(losses),
      submit_(std::move(submit)),
      block_(std::max(block_bytes, BlockBuilder::kMinBlockBytes)) {
  block_.Reset();
}

bool ProcessBlock::Append(const ProcessRecord& record, Block* block) {
  if (!format::WriteProcessRecord(block->writer, record)) return false;
  const bool first = block->processes == 0;
  if (first || record.time_ns < block->first_ns) {
    block->first_ns = record.time_ns;
  }
  block->last_ns = std::max(block->last_ns, record.time_ns);
  ++block->processes;
  ++block->counted;
  return true;
}

void ProcessBlock::Take(const ProcessRecord& given) {
  ProcessRecord without;
  if (!environment_ && !given.environ.empty()) {
    without = given;
    without.environ = {};
  }
  const ProcessRecord& record =
      environment_ || given.environ.empty() ? given : std::as_const(without);
  std::lock_guard lock(mu_);
  if (ended_) return;
  if (!Append(record, &block_)) {
    HandOnLocked();
    if (!Append(record, &block_)) {
      TakeLong(record);
      return;
    }
  }
  since_ns_.store(block_.first_ns, std::memory_order_release);
}

// A record longer than a block gets a block of its own.
void ProcessBlock::TakeLong(const ProcessRecord& given) {
  ProcessRecord record = given;
  if (record.argv.size() > kMaxListBytes) {
    record.argv = record.argv.substr(0, kMaxListBytes);
    record.incomplete = true;
  }
  if (record.environ.size() > kMaxListBytes) {
    record.environ = record.environ.substr(0, kMaxListBytes);
    record.incomplete = true;
  }
  Block block(format::kBlockInfoBytes + RoomFor(record));
  block.Reset();
  if (!Append(record, &block)) {
    losses_.Add(LossReason::kTooLarge, 1, record.time_ns, record.time_ns);
    return;
  }
  since_ns_.store(block.first_ns, std::memory_order_release);
  submit_(block);
  since_ns_.store(UINT64_MAX, std::memory_order_release);
}

void ProcessBlock::HandOn() {
  std::lock_guard lock(mu_);
  HandOnLocked();
}

void ProcessBlock::HandOnLocked() {
  if (block_.processes == 0) return;
  submit_(block_);
  block_.Reset();
  // Only now: a block written meanwhile must not claim that nothing earlier
  // follows.
  since_ns_.store(UINT64_MAX, std::memory_order_release);
}

void ProcessBlock::End() {
  std::lock_guard lock(mu_);
  HandOnLocked();
  ended_ = true;
}

}  // namespace tracefs

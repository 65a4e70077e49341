#include "tracefs/build/record_step.h"

#include <linux/fuse.h>

#include "tracefs/tally/transfer.h"

namespace tracefs::build {

ProcessKey CallerOf(const format::Record& record) {
  const Event& event = record.event;
  ProcessKey key;
  key.pid = static_cast<uint32_t>(
      event.GetOr0(event.Has(Field::kPid) ? Field::kPid : Field::kTid));
  if (event.caller != nullptr) key.start_ticks = event.caller->start_time;
  if (record.trace != nullptr) key.machine = record.trace->origin.machine;
  return key;
}

void SetCaller(const format::Record& record, FileStep* step) {
  const Event& event = record.event;
  step->process = CallerOf(record);
  if (event.caller != nullptr) step->ppid = event.caller->ppid;
  if (step->ppid == 0)
    step->ppid = static_cast<uint32_t>(event.GetOr0(Field::kPpid));
}

std::string_view RecordSteps::Place(const format::TraceContext* trace,
                                    std::string_view path,
                                    std::string* out) const {
  if (path.empty()) return {};
  std::string_view mount;
  if (mount_point_ != nullptr) {
    mount = *mount_point_;
  } else if (trace != nullptr) {
    mount = trace->description.header.Get("mount.point");
  }
  while (mount.ends_with('/')) mount.remove_suffix(1);
  if (mount.empty()) return path;
  *out = mount;
  if (path != "/") *out += path;
  return *out;
}

const FileStep* RecordSteps::Of(const format::Record& record) {
  const Event& event = record.event;
  if (event.before) return nullptr;
  step_ = {};
  step_.time_ns = event.GetOr0(Field::kTime);
  step_.duration_ns = event.GetOr0(Field::kLatency);
  SetCaller(record, &step_);
  step_.comm = record.Text(Field::kComm);
  step_.op = event.op;
  step_.inferred = event.GetOr0(Field::kInferred) != 0;
  step_.error = static_cast<uint32_t>(event.GetOr0(Field::kErrno));
  step_.flags = static_cast<uint32_t>(event.GetOr0(Field::kFlags));
  step_.inode = event.GetOr0(Field::kInode);
  step_.mode = static_cast<uint32_t>(event.Has(Field::kMode)
                                         ? event.Get(Field::kMode)
                                         : event.GetOr0(Field::kType) << 12);
  step_.size = event.GetOr0(Field::kSize);
  step_.mtime_ns = event.GetOr0(Field::kMtime);
  step_.has_attributes = event.Has(Field::kMode) && event.Has(Field::kSize);
  step_.fh = event.GetOr0(Field::kFh);
  step_.fh_out = event.GetOr0(Field::kFhOut);
  step_.inode_out = event.GetOr0(Field::kInodeOut);
  step_.offset = event.GetOr0(Field::kOffset);
  step_.offset_out = event.GetOr0(Field::kOffsetOut);
  step_.bytes = tally::BytesOf(event).moved();
  step_.resizes = event.op == Op::setattr_ &&
                  (event.GetOr0(Field::kValid) & FATTR_SIZE) != 0;
  step_.target = event.target;
  step_.path = Place(record.trace, format::PathOf(record, buffer_), &path_);
  step_.path2 =
      Place(record.trace, format::NewPathOf(record, buffer2_), &path2_);
  return &step_;
}

}  // namespace tracefs::build

// Writers of the definitions inside a block: DEF_PATH and DEF_PROCESS.
// FORMAT.md section 7. Ids count from 1 in each block, in order of definition.
#pragma once

#include <cstdint>
#include <string_view>

#include "tracefs/event/event.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

// `parent` was defined earlier in the block, or is 0 for the root of the mount
// (whose name is then empty). False if it did not fit.
inline bool WriteDefPath(MessageWriter& out, uint32_t id, uint32_t parent,
                         std::string_view name) {
  out.Begin(static_cast<uint16_t>(MessageId::kDefPath));
  out.Put<uint32_t>(ArgId::kPathId, id);
  if (parent != 0) {
    out.Put<uint32_t>(ArgId::kParentPathId, parent);
    out.PutText(Info(Field::kName).arg_id, name);
  }
  return out.End();
}

// False if it did not fit.
inline bool WriteDefProcess(MessageWriter& out, uint32_t id,
                            const CallerInfo& caller) {
  out.Begin(static_cast<uint16_t>(MessageId::kDefProcess));
  out.Put<uint32_t>(ArgId::kProcessId, id);
  out.Put<uint32_t>(Info(Field::kPid).arg_id, caller.pid);
  out.Put<uint32_t>(Info(Field::kPpid).arg_id, caller.ppid);
  out.Put<uint32_t>(Info(Field::kSid).arg_id, caller.sid);
  out.Put<uint32_t>(Info(Field::kPgid).arg_id, caller.pgid);
  out.PutText(Info(Field::kComm).arg_id, caller.comm());
  out.Put<uint64_t>(ArgId::kStartTime, caller.start_time);
  return out.End();
}

}  // namespace tracefs::format

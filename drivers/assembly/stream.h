// The stream driver (paper section 2.3): one message for each kept operation,
// holding the fields its verbosity flags choose.
#ifndef DRIVERS_ASSEMBLY_STREAM_H_
#define DRIVERS_ASSEMBLY_STREAM_H_

#include <memory>
#include <span>
#include <string_view>

#include "tracefs/pipeline/stages.h"

namespace tracefs {

// Verbosity flags, a bit each; the names of the paper, extended. kStreamFlags
// in stream.cc says what each one chooses.
enum StreamFlag : uint32_t {
  kStrPostOp = 1u << 0,
  kStrPreOp = 1u << 1,
  kStrTid = 1u << 2,
  kStrPid = 1u << 3,
  kStrPpid = 1u << 4,
  kStrSid = 1u << 5,
  kStrPgid = 1u << 6,
  kStrUid = 1u << 7,
  kStrGid = 1u << 8,
  kStrPname = 1u << 9,
  kStrTsSec = 1u << 10,
  kStrTsUsec = 1u << 11,
  kStrTsNsec = 1u << 12,
  kStrDuration = 1u << 13,
  kStrFname = 1u << 14,
  kStrFext = 1u << 15,
  kStrPath = 1u << 16,
  kStrInode = 1u << 17,
  kStrDentry = 1u << 18,
  kStrFile = 1u << 19,
  kStrArgs = 1u << 20,
  kStrRetval = 1u << 21,
  kStrData = 1u << 22,
  kStrDataCksum = 1u << 23,
  kStrAttr = 1u << 24,
};

struct StreamFlagInfo {
  std::string_view name;  // "STR_PID"
  uint32_t bits;
  std::string_view help;
};

// Every flag, for configs, --help and the trace header. STR_ALL is everything
// but STR_PRE_OP, the coarser time stamps, STR_ATTR, STR_DATA and
// STR_DATA_CKSUM.
std::span<const StreamFlagInfo> StreamFlags();

// The bits of the flag of that name; 0 if there is none.
uint32_t StreamFlagBits(std::string_view name);

// A driver with these flags. Without STR_PRE_OP it records operations when
// they are done, whether STR_POST_OP is given or not.
std::unique_ptr<AssemblyDriver> MakeStream(uint32_t flags);

}  // namespace tracefs

#endif  // DRIVERS_ASSEMBLY_STREAM_H_

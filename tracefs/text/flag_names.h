// Names of the numbers in operations: flags, modes, errno, types, as the Linux
// headers spell them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/event/op.h"

namespace tracefs {

// No Put… function of this header writes more.
inline constexpr size_t kMaxFlagText = 1024;

// ARG_FLAGS of an operation: "O_RDONLY|O_CLOEXEC", "RENAME_NOREPLACE",
// "SEEK_SET". O_LARGEFILE, which every open has, is left out. Bits without a
// name are added in hex; 0 is "0" where no name stands for it. Returns the end.
char* PutFlags(char* out, Op op, uint32_t flags);
std::string FlagsText(Op op, uint32_t flags);

// Those of `flags` that open(2) knows by a name: the others are the kernel's
// own.
uint32_t NamedOpenFlags(uint32_t flags);

// ARG_MODE of access: "R_OK|W_OK", "F_OK".
char* PutAccessMode(char* out, uint32_t mode);

// ARG_VALID of setattr, by FUSE's FATTR_ bits: "mode|size".
char* PutSetattrValid(char* out, uint32_t valid);

// ARG_LOCK_TYPE: "F_RDLCK"; "" if unknown.
std::string_view LockTypeName(uint64_t type);

// "ENOENT"; "" if this machine's libc knows no such number. Static.
std::string_view ErrnoName(uint64_t number);

// ARG_INODE_TYPE, st_mode >> 12, as filters spell it: "file", "dir", "link",
// "fifo", "sock", "char", "block"; "" if unknown. Static.
std::string_view FileTypeName(uint64_t type);

// "-rw-r--r--", as ls has it: 10 characters.
char* PutModeLetters(char* out, uint32_t mode);

}  // namespace tracefs

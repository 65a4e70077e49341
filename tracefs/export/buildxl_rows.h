// Which rows of BuildXL's format an operation makes, as BuildXL's own sandbox
// for Linux would report it.
#pragma once

#include <cstdint>
#include <string_view>

#include "tracefs/build/file_step.h"

namespace tracefs::buildxl {

// ReportedFileOperation, as numbers of its own.
enum class Operation : uint8_t {
  kCreateFile = 1,
  kProcess = 5,
  kCreateDirectory = 8,
  kDeleteFile = 9,
  kRemoveDirectory = 25,
  kProcessExit = 41,
  kProcessExec = 42,
  kReadlink = 44,
  kReadFile = 45,
  kWriteFile = 46,
  kCreateHardlinkSource = 47,
  kCreateHardlinkDest = 48,
  kOpenDirectory = 49,
  kClose = 50,
  kProbe = 51,
};
std::string_view OperationName(Operation operation);

// RequestedAccess.
enum class Requested : uint8_t {
  kNone = 0,
  kRead = 1,
  kWrite = 2,
  kProbe = 4,
  kEnumerate = 8,
};
std::string_view RequestedName(Requested access);

struct Row {
  Operation operation{};
  Requested access{};
};
// Up to two: of the path and of the second path, which may be that of the
// destination of a copy. `count` 0: the format has no row for it.
struct Rows {
  int count = 0;
  Row row[2];
};
Rows RowsOf(const build::FileStep& step);
// Of one name that a rename moves.
Rows RowsOfRename(bool is_directory);

// FILE_ATTRIBUTE_… of a path and FILE_FLAG_… of an open; kNotKnown.
inline constexpr uint32_t kNotKnown = UINT32_MAX;
uint32_t AttributesOf(const build::FileStep& step);
uint32_t AttributesOf(bool is_directory);
uint32_t OpenFlagsOf(const build::FileStep& step);

}  // namespace tracefs::buildxl

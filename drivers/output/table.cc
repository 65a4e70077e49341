#include "drivers/output/table.h"

#include <array>

#include "drivers/output/rows.h"

namespace tracefs {

std::span<const OutputDriverRow> OutputDrivers() {
  static const std::array rows = {FileRow(),   DeviceRow(), FifoRow(),
                                  FlightRow(), TcpRow(),    TlsRow(),
                                  UnixRow(),   SyslogRow()};
  return rows;
}

const OutputDriverRow* FindOutputDriver(std::string_view name) {
  for (const OutputDriverRow& row : OutputDrivers()) {
    if (row.entry.name == name) return &row;
  }
  return nullptr;
}

std::string_view WishKindName(OutputFileWish::Kind kind) {
  switch (kind) {
    case OutputFileWish::Kind::kNew:
      return "new";
    case OutputFileWish::Kind::kNewMap:
      return "map";
    case OutputFileWish::Kind::kFolder:
      return "folder";
    case OutputFileWish::Kind::kDevice:
      return "device";
  }
  return "";
}

}  // namespace tracefs

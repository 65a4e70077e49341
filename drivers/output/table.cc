#include "drivers/output/table.h"

#include <array>

#include "drivers/output/rows.h"

namespace tracefs {

std::span<const OutputDriverRow> OutputDrivers() {
  static const std::array rows = {
      FileRow(), DeviceRow(), FifoRow(),   FlightRow(), TcpRow(),
      TlsRow(),  UnixRow(),   SyslogRow(), NatsRow(),   KafkaRow()};
  return rows;
}

const OutputDriverRow* FindOutputDriver(std::string_view name) {
  for (const OutputDriverRow& row : OutputDrivers()) {
    if (row.entry.name == name) return &row;
  }
  return nullptr;
}

}  // namespace tracefs

// Finding: a report of the format's readers as the reading library tells it, by
// kinds that are promised to stay.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "tracefs/format/report.h"
#include "tracefs/reader/tracefs_reader.h"

namespace tracefs::reader {

// TRACEFS_UNKNOWN_MESSAGE, … of a report.
int FindingKind(format::ReportKind kind);

// How often each kind was found, by what a trace's reader counted.
using FindingCounts = std::array<uint64_t, TRACEFS_REPORT_KINDS>;
void AddCounts(const format::ReadStats& stats, FindingCounts* counts);

// Lives as long as the call that tells it.
struct Finding {
  int kind = 0;
  size_t trace = 0;
  const format::Report* report = nullptr;
};

}  // namespace tracefs::reader

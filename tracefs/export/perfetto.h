// The Trace Event Format (JSON) of Chrome and Perfetto, for ui.perfetto.dev,
// chrome://tracing and speedscope. An operation is a complete event ("X") on
// the track of the thread that called; where two of one thread overlap without
// one lying in the other, as of a thread that reads ahead, and where nobody is
// known to have called, it is an asynchronous pair ("b", "e"). Times are us
// since the first operation, with three digits; the origin is in otherData.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

std::unique_ptr<Exporter> MakePerfettoExporter(OutputBuffer& out,
                                               const ExportOptions& options);

}  // namespace tracefs

// XML: one document, <trace> with an <operation> for each, as
// tracefs/export/trace.xsd has it. Attributes are the columns of other tables.
// Text that XML cannot hold as it is (bytes that are not UTF-8, control
// characters) is in the attribute NAME_b64 instead, in base 64.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

std::unique_ptr<Exporter> MakeXmlExporter(OutputBuffer& out,
                                          const ExportOptions& options);

}  // namespace tracefs

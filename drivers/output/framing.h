// Framing: the last output filter of every chain. Puts the frame header of
// FORMAT.md ("Frames") before each block and hands both to the output driver.
#pragma once

#include <memory>

#include "tracefs/pipeline/stages.h"

namespace tracefs {

std::unique_ptr<OutputFilter> MakeFraming(std::unique_ptr<OutputDriver> driver);

}  // namespace tracefs

// The lines around a table: what is looked at, what there is to say of it, and
// what keys do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tracefs/screen/browser.h"
#include "tracefs/screen/line.h"
#include "tracefs/screen/look.h"

namespace tracefs::screen {

// What is looked at has a fourth of the width, but no less than 8.
std::string Title(const Browser& browser, const ActivityCounts& total,
                  size_t width, const Means& means);
// Empty where there is nothing to say.
Line NoticeLine(const Browser& browser, const Means& means);
Line FilterLine(const Browser& browser, const Means& means);
// The bottom line: the more important first, as many as have room. `line`:
// which one of the screen it is.
Line KeyLine(const Browser& browser, bool more, size_t line, size_t width,
             std::vector<Hit>* hits);
// The views there are.
Line TabLine(const Browser& browser, size_t line, size_t width,
             std::vector<Hit>* hits);

}  // namespace tracefs::screen

// The page: one HTML file that shows a document, without a network, from any
// place, in any browser; without scripts it still has pictures and tables.
#pragma once

#include <string>

#include "tracefs/report/document.h"

namespace tracefs::report {

std::string MakePage(const Json& document);

// The summary and the first rows of each table, for a text in Markdown.
std::string MakeMarkdown(const Json& document);

// The style sheet of pictures that stand alone.
std::string_view PictureStyle();
// The same for programs that know no variables, with colours for paper.
std::string PlainPictureStyle();

}  // namespace tracefs::report

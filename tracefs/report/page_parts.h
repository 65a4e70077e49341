// Parts of the page, which page.cc puts together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefs/report/document.h"

namespace tracefs::report {

// Rows of the tables that are there without scripts.
inline constexpr size_t kStaticRows = 25;

// <tag>text</tag>
std::string Element(std::string_view tag, std::string_view text);

// page_head.cc
// Up to the body; the policy lets this script run and no other.
std::string PageHead(std::string_view title, std::string_view script);
// From the end of what is shown on: the data, and that script.
std::string PageEnd(const Json& data, std::string_view script);

struct Tile {
  const char* id;
  const char* what;
  std::string value;
  std::string more;
  bool alarm = false;
};
std::vector<Tile> TilesOf(const Json& document);
// The line below the title: when it was, on which machine, what was asked for.
std::string WhenText(const Json& document);
// The tiles: what there is of it all.
std::string Tiles(const Json& document);
// What is to be known before it is believed, which opens; the verdict; what
// could be saved; what the numbers say in sentences.
std::string Findings(const Json& document);

}  // namespace tracefs::report

#include "tracefs/report/comparison.h"

#include "tracefs/base/version.h"
#include "tracefs/report/page_parts.h"
#include "tracefs/report/pictures.h"
#include "tracefs/report/units_text.h"
#include "tracefs/report/web_files.h"
#include "tracefs/text/escape.h"

namespace tracefs::report {
namespace {

constexpr std::array<const char*, 2> kSides = {"A", "B"};

// What the page needs of a document.
Json SideAsJson(const Json& document) {
  Json side;
  for (const char* const member : {"title", "subject", "time", "totals",
                                   "verdict", "timeline", "losses", "asked"}) {
    side[member] = document[member];
  }
  side["when"] = WhenText(document);
  Json& operations = side["operations"] = Json::array();
  for (const Json& op : document["operations"]) {
    operations.push_back(
        {{"op", op["op"]}, {"count", op["count"]}, {"bins", op["bins"]}});
  }
  return side;
}

std::string TitleOfBoth(const std::array<Json, 2>& sides) {
  const std::string a = sides[0]["title"];
  const std::string b = sides[1]["title"];
  return a == b ? a + ": two runs" : a + " and " + b;
}

std::string Heads(const std::vector<std::string>& heads) {
  std::string html = "<thead><tr>";
  for (const std::string& head : heads) {
    html += "<th scope=\"col\">" + XmlText(head) + "</th>";
  }
  return html + "</tr></thead>";
}

// The tiles of both, one below the other.
std::string Totals(const std::array<Json, 2>& sides) {
  std::string html =
      "<div class=\"scroll\"><table id=\"totals\" class=\"both\" "
      "aria-label=\"both runs\">" +
      Heads({"", "A", "", "B", ""}) + "<tbody>";
  const std::vector<Tile> a = TilesOf(sides[0]);
  const std::vector<Tile> b = TilesOf(sides[1]);
  for (size_t i = 0; i < a.size(); ++i) {
    html += "<tr><th scope=\"row\">" + XmlText(a[i].what) + "</th>";
    for (const Tile* const tile : {&a[i], &b[i]}) {
      html += std::string("<td") + (tile->alarm ? " class=\"alarm\"" : "") +
              ">" + Element("b", tile->value) +
              "</td><td class=\"text small\">" + XmlText(tile->more) + "</td>";
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

std::string StaticTable(const ComparedTable& table) {
  std::vector<std::string> heads;
  for (const Json& column : table.columns) heads.push_back(column["name"]);
  std::string html = "<div class=\"scroll\"><table>" + Heads(heads) + "<tbody>";
  for (size_t i = 0; i < std::min(kStaticRows, table.texts.size()); ++i) {
    html += "<tr>";
    for (const std::string& text : table.texts[i]) html += Element("td", text);
    html += "</tr>";
  }
  html += "</tbody></table></div>";
  if (table.texts.size() > kStaticRows) {
    html += "<p class=\"small\">The first " + std::to_string(kStaticRows) +
            " of " + std::to_string(table.texts.size()) +
            "; with scripts, all of them.</p>";
  }
  return html;
}

}  // namespace

Json MakeComparison(const std::array<Json, 2>& sides,
                    const std::vector<ComparedTable>& tables) {
  Json data = {{"schema", "tracefs-comparison/1"},
               {"generator", "tracefs-report " + std::string(kVersion)},
               {"title", TitleOfBoth(sides)},
               {"sides", {SideAsJson(sides[0]), SideAsJson(sides[1])}},
               {"tables", Json::array()}};
  for (const ComparedTable& table : tables) {
    data["tables"].push_back({{"name", table.name},
                              {"summary", table.summary},
                              {"notes", table.notes},
                              {"columns", table.columns},
                              {"rows", table.rows},
                              {"other", table.other}});
  }
  return data;
}

std::string MakeComparisonPage(const std::array<Json, 2>& sides,
                               const std::vector<ComparedTable>& tables) {
  const Json data = MakeComparison(sides, tables);
  const std::string title = data["title"];
  std::string html = PageHead(title, kComparisonScript);
  html += "<body>\n<header>" + Element("h1", title);
  for (size_t i = 0; i < sides.size(); ++i) {
    html += "<p class=\"small when\"><b>" + std::string(kSides[i]) + "</b> " +
            XmlText(sides[i]["title"].get<std::string>() + "; " +
                    WhenText(sides[i])) +
            "</p>";
  }
  html +=
      "<div class=\"sticky\"><div id=\"tools\" hidden></div></div></header>\n"
      "<main>\n<section id=\"summary\">";
  if (!tables.empty()) {
    html += "<p class=\"verdict\">" + XmlText(tables[0].summary) + "</p>";
  }
  html += Totals(sides) +
          "</section>\n<section id=\"timeline\"><h2>Over time</h2><div "
          "class=\"body\">";
  for (size_t i = 0; i < sides.size(); ++i) {
    html += Element("h3", kSides[i]) + "<div class=\"figure\">" +
            DrawTimeline(sides[i]).Finish() + "</div>";
  }
  html += "</div></section>\n";
  for (const ComparedTable& table : tables) {
    html += "<section id=\"by-" + table.name + "\">" +
            Element("h2", "By " + table.name) + "<p class=\"caption\">" +
            XmlText(table.summary) + "</p><div class=\"body\">" +
            StaticTable(table) + "</div>";
    for (const std::string& note : table.notes) {
      html += "<p class=\"small\">" + XmlText(note) + "</p>";
    }
    html += "</section>\n";
  }
  return html + PageEnd(data, kComparisonScript);
}

}  // namespace tracefs::report

#include "tracefs/report/page.h"

#include <span>

#include "tracefs/report/page_parts.h"
#include "tracefs/report/pictures.h"
#include "tracefs/report/units_text.h"
#include "tracefs/report/web_files.h"
#include "tracefs/text/escape.h"

namespace tracefs::report {
namespace {

// How long operations took: of what took nothing at all no time is known.
std::string TookText(uint64_t ns) { return ns == 0 ? "-" : SpanText(ns); }

// The end of a table that shows the first ones of `rows`.
std::string EndOfStaticRows(const Json& rows) {
  std::string html = "</tbody></table></div>";
  if (rows.size() > kStaticRows) {
    html += "<p class=\"small\">The first " + std::to_string(kStaticRows) +
            " of " + std::to_string(rows.size()) +
            "; with scripts, all of them.</p>";
  }
  return html;
}

// A table of the document: its first rows.
std::string StaticTable(const Json& table, std::string_view what) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">" +
      XmlText(what) + "</th>";
  for (const char* head :
       {"ops", "errors", "read", "written", "time", "longest"}) {
    html += "<th scope=\"col\">" + std::string(head) + "</th>";
  }
  html += "</tr></thead><tbody>";
  const auto row = [&](const std::string& name, const Json& numbers,
                       size_t first) {
    html += "<tr><th scope=\"row\">" + XmlText(name) + "</th>";
    const auto number = [&](size_t i) {
      return numbers[first + i].get<uint64_t>();
    };
    for (const std::string& text :
         {CountText(number(0)), CountText(number(1)), SizeText(number(2)),
          SizeText(number(3)), TookText(number(4)), TookText(number(5))}) {
      html += Element("td", text);
    }
    html += "</tr>";
  };
  size_t shown = 0;
  for (const Json& numbers : table["rows"]) {
    if (shown++ == kStaticRows) break;
    row(numbers[0], numbers, 1);
  }
  const size_t more =
      table["rows"].size() - std::min(shown, table["rows"].size());
  if (more == 0 && NumberAt(table, "left_out") != 0) {
    row("others", table["other"], 0);
  }
  return html + EndOfStaticRows(table["rows"]);
}

std::string StaticOperations(const Json& document) {
  std::string html =
      "<div class=\"scroll\"><table><thead><tr><th scope=\"col\">operation</th>"
      "<th scope=\"col\">ops</th><th scope=\"col\">errors</th>"
      "<th scope=\"col\">time</th><th scope=\"col\">p50</th>"
      "<th scope=\"col\">p99</th><th scope=\"col\">longest</th></tr></thead>"
      "<tbody>";
  for (const Json& op : document["operations"]) {
    html += "<tr><th scope=\"row\">" + XmlText(op["op"].get<std::string>()) +
            "</th>" + Element("td", CountText(NumberAt(op, "count"))) +
            Element("td", CountText(NumberAt(op, "errors"))) +
            Element("td", TookText(NumberAt(op, "time_ns"))) +
            Element("td", TookText(NumberAt(op, "p50_ns"))) +
            Element("td", TookText(NumberAt(op, "p99_ns"))) +
            Element("td", TookText(NumberAt(op, "longest_ns"))) + "</tr>";
  }
  return html + "</tbody></table></div>";
}

// Rows of texts and numbers as they are.
std::string StaticRows(const Json& rows, std::span<const char* const> heads) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const char* head : heads) {
    html += "<th scope=\"col\">" + std::string(head) + "</th>";
  }
  html += "</tr></thead><tbody>";
  size_t shown = 0;
  for (const Json& row : rows) {
    if (shown++ == kStaticRows) break;
    html += "<tr>";
    for (const Json& cell : row) {
      html += cell.is_string()
                  ? "<td class=\"text\">" + XmlText(cell.get<std::string>()) +
                        "</td>"
                  : Element("td", cell.is_null() ? "-" : cell.dump());
    }
    html += "</tr>";
  }
  return html + "</tbody></table></div>";
}

// What one driver counted.
std::string StaticCounted(const Json& table) {
  std::string html = "<h3>" +
                     XmlText(table["trace"].get<std::string>() + ": " +
                             table["title"].get<std::string>()) +
                     "</h3>" +
                     Element("p", CountText(table["sum"][0].get<uint64_t>()) +
                                      " operations in " +
                                      SpanText(NumberAt(table, "length_ns"))) +
                     "<div class=\"scroll\"><table><thead><tr>";
  const size_t keys = std::max<size_t>(1, table["by"].size());
  const auto text_head = [&](const std::string& head) {
    html += "<th scope=\"col\" class=\"text\">" + XmlText(head) + "</th>";
  };
  if (table["by"].empty()) text_head("key");
  for (const Json& head : table["by"]) text_head(head.get<std::string>());
  for (const Json& value : table["values"]) {
    html += "<th scope=\"col\">" +
            std::string(ValueHead(value.get<std::string>())) + "</th>";
  }
  html += "</tr></thead><tbody>";
  const auto row = [&](const Json& cells, size_t first, const char* name) {
    html += "<tr>";
    for (size_t i = 0; i < keys; ++i) {
      const std::string text = i < first ? cells[i].get<std::string>()
                               : i == 0  ? name
                                         : "";
      html += "<td class=\"text\">" + XmlText(text) + "</td>";
    }
    for (size_t i = first; i < cells.size(); ++i) {
      html +=
          Element("td", ValueText(table["values"][i - first].get<std::string>(),
                                  cells[i].get<uint64_t>()));
    }
    html += "</tr>";
  };
  size_t shown = 0;
  for (const Json& cells : table["rows"]) {
    if (shown++ == kStaticRows) break;
    row(cells, table["by"].size(), "all");
  }
  if (!table["other"].is_null()) row(table["other"], 0, "other keys");
  return html + EndOfStaticRows(table["rows"]);
}

std::string Configuration(const Json& document) {
  std::string html;
  for (const Json& trace : document["traces"]) {
    html += "<h3>" + XmlText(trace["name"].get<std::string>()) + "</h3><dl>";
    html += Element("dt", "serial") +
            Element("dd", trace["serial"].get<std::string>());
    for (const Json& property : trace["properties"]) {
      html += Element("dt", property[0].get<std::string>()) + "<dd><pre>" +
              XmlText(property[1].get<std::string>()) + "</pre></dd>";
    }
    if (const uint64_t more = NumberAt(trace, "properties_left_out")) {
      html += Element("dt", "left out") +
              Element("dd", CountText(more) +
                                " long ones: tracefs-dump "
                                "--header shows them");
    }
    html += "</dl>";
  }
  return html;
}

bool HasOperations(const Json& document) {
  return NumberAt(document["totals"], "count") != 0;
}

// A panel of the page. Its picture, if it has one, is that of its name
// (pictures.h), and what scripts make of it that of panels.js.
struct Panel {
  const char* id;
  const char* title;
  const char* link;  // the title, as short as it can be
  const char* caption;
  // What it has without scripts, below its picture.
  std::string (*still)(const Json& document) = nullptr;
  // Whether it has anything to show.
  bool (*is_there)(const Json& document) = &HasOperations;
};

constexpr Panel kPanels[] = {
    {"timeline", "Over time", "Over time",
     "Drag over it, or use the arrow keys, to choose a time: all panels then "
     "show that time alone.",
     [](const Json& document) -> std::string {
       if (document["timeline"]["counted"].empty()) return "";
       return "<p class=\"small\">What was counted is known by its periods "
              "alone: over each of them it is drawn with one rate. What "
              "several traces have counted is in it several times.</p>";
     },
     [](const Json& document) {
       return HasOperations(document) ||
              NumberAt(document["time"], "bins") != 0;
     }},
    {"operations", "Operations", "Operations",
     "Each kind of operation: how many, how many failed, how long they took. "
     "p99: 99 of 100 took no longer (within 0.8 %, over the whole time).",
     &StaticOperations},
    {"latency", "Latency over time", "Latency",
     "How many operations took how long, and when."},
    {"directories", "Places over time", "Places",
     "Operations in each directory (or of each file, command) over time.",
     [](const Json& document) {
       return StaticTable(document["tables"]["directories"], "directory");
     }},
    {"files", "Files, directories, users, commands", "Files",
     "What was worked on and by whom. Titles of columns sort.",
     [](const Json& document) {
       std::string html;
       for (const char* name : {"files", "extensions", "commands", "users"}) {
         html += "<h3>" + std::string(name) + "</h3>" +
                 StaticTable(document["tables"][name], name);
       }
       return html;
     }},
    {"tree", "Directories by size of work", "Sizes",
     "Each box is a directory or a file within the one around it; its area is "
     "the time spent on it, with all that is in it. Colours tell levels "
     "apart."},
    {"processes", "Processes", "Processes",
     "Which process started which, when each one lived and what it did. A bar "
     "with a dashed edge: it was not seen to end."},
    {"access", "Access patterns", "Access",
     "Where a read or write goes, seen from the one before it in the same open "
     "file: first, consecutive, forward (a gap), backward."},
    {"errors", "Errors", "Errors",
     "Operations that failed, by reason, kind and command.",
     [](const Json& document) {
       static constexpr const char* kHeads[] = {"error", "operation", "command",
                                                "ops"};
       return StaticRows(document["errors"]["rows"], kHeads);
     }},
    {"flame", "Command, path, operation", "Flame",
     "Width is time spent below that command, path or operation."},
    {"slowest", "Slowest operations", "Slowest",
     "Those that took longest, one by one.",
     [](const Json& document) {
       static constexpr const char* kHeads[] = {
           "began (ns)", "took (ns)", "op", "error", "pid", "command", "path"};
       return StaticRows(document["slowest"], kHeads);
     }},
    {"counted", "Counted", "Counted",
     "What tracers counted instead of recording it, as their configuration "
     "asks: a table for each aggregate driver. \"other keys\": what was not "
     "kept apart.",
     [](const Json& document) {
       std::string html;
       for (const Json& table : document["counted"]) {
         html += StaticCounted(table);
       }
       return html;
     },
     [](const Json& document) { return !document["counted"].empty(); }},
    {"configuration", "Configuration and machine", "Machine",
     "What the traces say of themselves.", &Configuration,
     [](const Json&) { return true; }},
};

std::string Body(const Panel& panel, const Json& document) {
  std::string html;
  if (const Picture* const picture = FindPicture(panel.id)) {
    html +=
        "<div class=\"figure\">" + picture->draw(document).Finish() + "</div>";
  }
  if (panel.still != nullptr) html += panel.still(document);
  return html;
}

std::string Opening(const Json& document) {
  std::string html =
      "<body>\n<a class=\"skip\" href=\"#summary\">To the "
      "summary</a>\n<header>" +
      Element("h1", document["title"].get<std::string>()) +
      "<p class=\"small when\">" + XmlText(WhenText(document)) +
      "</p><div class=\"sticky\"><nav aria-label=\"Panels\">";
  for (const Panel& panel : kPanels) {
    if (!panel.is_there(document)) continue;
    html += "<a href=\"#" + std::string(panel.id) + "\">" + panel.link + "</a>";
  }
  return html +
         "</nav><div id=\"tools\" hidden></div></div></header>\n<main>\n"
         "<section id=\"summary\" aria-label=\"Summary\">" +
         Tiles(document) + "</section>\n";
}

std::string PanelSection(const Panel& panel, const Json& document) {
  return "<section id=\"" + std::string(panel.id) + "\">" +
         Element("h2", panel.title) + "<p class=\"caption\">" +
         XmlText(panel.caption) + "</p><div class=\"body\">" +
         Body(panel, document) + "</div></section>\n";
}

}  // namespace

std::string_view PictureStyle() { return kPictureStyle; }

std::string PlainPictureStyle() {
  // Rules come after the colours, of which the last ones are for paper.
  const size_t rules = kPictureStyle.find("\nsvg text");
  const std::string_view colours = kPictureStyle.substr(0, rules);
  std::string style(kPictureStyle.substr(rules));
  for (size_t at = 0; (at = style.find("var(", at)) != style.npos;) {
    const size_t end = style.find(')', at);
    const std::string name = style.substr(at + 4, end - at - 4) + ": ";
    const size_t value = colours.rfind(name) + name.size();
    const size_t size = colours.find(';', value) - value;
    style.replace(at, end + 1 - at, colours.substr(value, size));
  }
  return style;
}

std::string MakePage(const Json& document) {
  std::string html =
      PageHead(document["title"].get<std::string>(), kPageScript) +
      Opening(document);
  // The time comes first; what it says of it next.
  std::string sections;
  for (const Panel& panel : kPanels) {
    if (panel.is_there(document)) sections += PanelSection(panel, document);
    if (&panel == &kPanels[0]) {
      sections += Findings(document);
    }
  }
  html += sections;
  return html + PageEnd(document, kPageScript);
}

}  // namespace tracefs::report

// The beginning of the page: whose it is, the verdict, what there is of it all,
// and what is to be known before it is believed.
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "tracefs/base/join.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/headline/headline.h"
#include "tracefs/report/page_parts.h"
#include "tracefs/report/pictures.h"
#include "tracefs/report/units_text.h"
#include "tracefs/report/web_files.h"
#include "tracefs/text/escape.h"

namespace tracefs::report {
namespace {

// "'sha256-…'" of what stands between the tags.
std::string SourceOf(std::string_view text) {
  Sha256 hash;
  hash.Update(std::as_bytes(std::span(text)));
  const Digest digest = hash.Finish();
  std::string base64(Base64Size(digest.size()), '\0');
  PutBase64(base64.data(),
            {reinterpret_cast<const char*>(digest.data()), digest.size()});
  return "'sha256-" + base64 + "'";
}

std::string Traces(const Json& document) {
  std::string html;
  for (const Json& trace : document["traces"]) {
    const bool complete = trace["complete"].get<bool>();
    html += "<h3>" + XmlText(trace["name"].get<std::string>()) + "</h3><dl>";
    const auto row = [&](std::string_view key, std::string_view text) {
      html += Element("dt", key) + Element("dd", text);
    };
    row("complete", complete ? "yes" : "no");
    for (const char* part : {"lost", "damage"}) {
      for (const auto& [reason, count] : trace[part].items()) {
        row(reason, CountText(count.get<uint64_t>()));
      }
    }
    if (!trace["final"].get<bool>() && !trace["snapshot"].get<bool>()) {
      row("end",
          "the trace does not say how it ended: it was cut, or is still "
          "being written");
    }
    row("visibility", trace["visibility"].get<std::string>());
    if (trace["invisible"] != "") {
      row("not visible", trace["invisible"].get<std::string>());
    }
    html += "</dl>";
  }
  return html;
}

std::string VerdictText(const Json& verdict) {
  std::string html = "<p class=\"verdict\">" +
                     XmlText(verdict["sentences"].get<std::string>()) + "</p>";
  if (verdict["findings"].empty()) return html;
  html +=
      "<div class=\"scroll\"><table class=\"findings\"><caption>What could be "
      "saved, at most"
      "</caption><thead><tr><th>time</th><th>ops</th><th>what</th><th>more"
      "</th></tr></thead><tbody>";
  for (const Json& finding : verdict["findings"]) {
    html += "<tr>" + Element("td", SpanText(NumberAt(finding, "time_ns"))) +
            Element("td", CountText(NumberAt(finding, "count"))) +
            Element("td", finding["what"].get<std::string>()) + "<td>" +
            Element("code", finding["command"].get<std::string>()) +
            "</td></tr>";
  }
  return html + "</tbody></table></div>";
}

bool IsComplete(const Json& document) {
  return NumberAt(document["losses"], "incomplete_traces") == 0 &&
         NumberAt(document["losses"], "operations") == 0;
}

std::string Html(const Tile& tile) {
  return std::string("<div class=\"tile") + (tile.alarm ? " alarm" : "") +
         "\" id=\"tile-" + tile.id + "\">" + Element("span", tile.what) +
         Element("b", tile.value) + "<span class=\"more\">" +
         XmlText(tile.more) + "</span></div>";
}

constexpr const char* kNotKnown = "not known";

Tile ElapsedTile(const Json& document) {
  const Json& time = document["time"];
  const uint64_t elapsed = NumberAt(document["verdict"], "elapsed_ns");
  Tile tile{"elapsed", "elapsed", elapsed ? SpanText(elapsed) : kNotKnown, ""};
  const uint64_t between =
      time.contains("length_ns") ? NumberAt(time, "length_ns") : 0;
  // The time line may be longer: what was counted, too, is on it.
  if (between != 0 && between <= elapsed) {
    tile.more = SpanText(between) + " between operations";
  }
  return tile;
}

Tile TimeTile(const Json& document) {
  const uint64_t sum = NumberAt(document["totals"], "time_ns");
  const uint64_t elapsed = NumberAt(document["verdict"], "elapsed_ns");
  const uint64_t covered = NumberAt(document["verdict"], "covered_ns");
  return {"time", "in the file system", sum ? SpanText(sum) : kNotKnown,
          covered && elapsed
              ? "one running " + CoveredText(covered, elapsed) + " of the time"
              : ""};
}

Tile OperationsTile(const Json& document) {
  const uint64_t count = NumberAt(document["totals"], "count");
  const size_t kinds = document["operations"].size();
  if (count == 0 && !document["counted"].empty()) {
    return {"operations", "operations", "counted", "not one by one"};
  }
  return {"operations", "operations", CountText(count),
          count ? CountText(kinds, "kind", "kinds") : ""};
}

Tile LossesTile(const Json& document) {
  const Json& losses = document["losses"];
  const uint64_t lost = NumberAt(losses, "operations");
  const uint64_t traces = NumberAt(losses, "incomplete_traces");
  return {"losses", "losses",
          lost     ? CountText(lost)
          : traces ? "not known"
                   : "none",
          lost     ? "operations are missing"
          : traces ? "damaged, or without an end"
                   : "all is there",
          !IsComplete(document)};
}

// What there is to know about it, in a few words each.
std::vector<std::string> CaveatWords(const Json& document) {
  std::vector<std::string> words;
  const uint64_t lost = NumberAt(document["losses"], "operations");
  words.push_back(lost ? CountText(lost) + " operations are missing"
                  : IsComplete(document) ? "nothing is missing"
                                         : "a trace is damaged or has no end");
  for (const Json& trace : document["traces"]) {
    if (trace["invisible"] == "") continue;
    words.push_back("some operations cannot be seen (visibility " +
                    trace["visibility"].get<std::string>() + ")");
    break;
  }
  const Json& totals = document["totals"];
  for (const auto& [key, text] :
       {std::pair{"inferred", " with an inferred caller"},
        std::pair{"untimed", " without a time"},
        std::pair{"before", " told before they ran"}}) {
    const uint64_t count = NumberAt(totals, key);
    if (count != 0) words.push_back(CountText(count) + text);
  }
  if (const size_t notes = document["notes"].size()) {
    words.push_back(CountText(notes, "note on what was", "notes on what was") +
                    " summed up");
  }
  return words;
}

// What is missing, cannot be seen or was folded: a line that opens.
std::string Caveats(const Json& document) {
  const std::string words = JoinWords(CaveatWords(document), "; ");
  std::string html =
      "<details id=\"completeness\" class=\"" +
      std::string(IsComplete(document) ? "box" : "box alarm") +
      "\"><summary>Caveats: " + XmlText(words) +
      "</summary><h3>What is missing, and what cannot be "
      "seen</h3><p>" +
      (IsComplete(document) ? "Nothing that was to be recorded is missing."
                            : "Something that was to be recorded is missing.") +
      "</p>" + Traces(document);
  const Json& totals = document["totals"];
  const auto tell = [&](const char* key, const char* text) {
    if (const uint64_t count = NumberAt(totals, key)) {
      html += Element("p", CountText(count) + text);
    }
  };
  tell("inferred",
       " operations were done by the kernel for a process that can "
       "only be inferred; they count for no process.");
  tell("untimed", " operations have no time: they are in sums, not over time.");
  tell("before",
       " operations were told before they ran; they count only where "
       "they were told again.");
  if (!document["notes"].empty()) {
    html += "<h3>What was summed up to keep this page small</h3><ul>";
    for (const Json& note : document["notes"]) {
      html += Element("li", note.get<std::string>());
    }
    html += "</ul>";
  }
  return html + "</details>\n";
}

}  // namespace

std::string Element(std::string_view tag, std::string_view text) {
  const std::string name(tag);
  return "<" + name + ">" + XmlText(text) + "</" + name + ">";
}

std::string PageHead(std::string_view title, std::string_view script) {
  const std::string policy =
      "default-src 'none'; script-src " + SourceOf(script) + "; style-src " +
      SourceOf(std::string(kPageStyle) + std::string(kPictureStyle)) +
      "; base-uri 'none'; form-action 'none'";
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"";
  html += policy;
  html +=
      "\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n";
  html += Element("title", title) + "\n<style>";
  html += kPageStyle;
  html += kPictureStyle;
  return html + "</style>\n</head>\n";
}

std::string PageEnd(const Json& data, std::string_view script) {
  std::string html =
      "</main>\n<footer class=\"small\">" +
      XmlText(data["generator"].get<std::string>()) +
      "</footer>\n<script type=\"application/json\" id=\"data\">";
  html += EmbeddableJson(data);
  html += "</script>\n<script>";
  html += script;
  return html + "</script>\n</body>\n</html>\n";
}

std::string WhenText(const Json& document) {
  const Json& subject = document["subject"];
  std::vector<std::string> parts;
  const std::string host = subject["host"];
  if (!host.empty()) parts.push_back("on " + host);
  const std::string begin = subject["begin"];
  if (!begin.empty()) {
    const std::string end = subject["end"];
    // The same day once.
    const bool same_day = begin.substr(0, 10) == end.substr(0, 10);
    parts.push_back(begin +
                    (begin == end ? ""
                     : same_day   ? " to " + end.substr(11)
                                  : " to " + end) +
                    " " + subject["zone"].get<std::string>());
  }
  std::string names;
  for (const Json& trace : document["traces"]) {
    const std::string name = trace["name"];
    names += (names.empty() ? "" : ", ") + name.substr(name.rfind('/') + 1);
  }
  if (!names.empty() && names != document["title"]) parts.push_back(names);
  for (const auto& [key, word] :
       {std::pair{"filter", "only "}, std::pair{"from", "from "},
        std::pair{"to", "to "}}) {
    const std::string text = document["asked"][key];
    if (!text.empty()) parts.push_back(word + text);
  }
  return JoinWords(parts, "; ");
}

std::vector<Tile> TilesOf(const Json& document) {
  const Json& totals = document["totals"];
  const uint64_t count = NumberAt(totals, "count");
  const uint64_t errors = NumberAt(totals, "errors");
  return {ElapsedTile(document),
          TimeTile(document),
          OperationsTile(document),
          {"bytes", "bytes", SizeText(NumberAt(totals, "bytes")),
           SizeText(NumberAt(totals, "read")) + " read, " +
               SizeText(NumberAt(totals, "written")) + " written"},
          {"errors", "errors", CountText(errors),
           errors ? ShareText(errors, count) + " of operations" : ""},
          LossesTile(document)};
}

std::string Tiles(const Json& document) {
  std::string html = "<div class=\"tiles\">";
  for (const Tile& tile : TilesOf(document)) html += Html(tile);
  return html + "</div>";
}

std::string Findings(const Json& document) {
  std::string html =
      "<section id=\"verdict\">" + Caveats(document) +
      "<h2>What it says</h2><p class=\"small whole-time\">Of all the "
      "time.</p>" +
      VerdictText(document["verdict"]) + "<ul class=\"says\">";
  for (const Json& sentence : document["summary"]) {
    html += "<li class=\"" + sentence["level"].get<std::string>() + "\">" +
            XmlText(sentence["text"].get<std::string>()) + "</li>";
  }
  return html + "</ul></section>\n";
}

}  // namespace tracefs::report

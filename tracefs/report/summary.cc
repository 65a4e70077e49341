// The summary: what the numbers of a document say, in sentences.
#include <algorithm>
#include <map>
#include <string>

#include "tracefs/report/document_parts.h"
#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

uint64_t Number(const Json& json) {
  return json.is_number() ? json.get<uint64_t>() : 0;
}

class Summary {
 public:
  explicit Summary(const Json& document)
      : document_(document), totals_(document["totals"]) {}

  Json Sentences() {
    SayWhatIsMissing();
    SayHowMuch();
    if (Number(totals_["count"]) != 0) {
      SayWhereTimeGoes();
      SayWhatMoves();
      SayHowLong();
      SayWhatFails();
    }
    return std::move(sentences_);
  }

 private:
  void Say(const char* level, std::string text) {
    sentences_.push_back({{"level", level}, {"text", std::move(text)}});
  }

  void SayWhatIsMissing() {
    const Json& losses = document_["losses"];
    const uint64_t lost = Number(losses["operations"]);
    if (lost != 0) {
      Say("bad", "This record is not complete: " +
                     CountText(lost, "operation is", "operations are") +
                     " missing. What follows is about those that are there.");
    } else if (Number(losses["incomplete_traces"]) != 0) {
      Say("bad",
          "This record is not complete: a trace is damaged or does not end as "
          "it should. What follows is about what could be read.");
    }
  }

  void SayHowMuch() {
    const uint64_t count = Number(totals_["count"]);
    if (count == 0 && !document_["counted"].empty()) {
      Say("note",
          "There are no operations one by one in this trace, only what was "
          "counted of them (see Counted).");
      for (const Json& table : document_["counted"]) {
        if (table["in_timeline"].get<bool>()) SayWhatWasCounted(table);
      }
      return;
    }
    if (count == 0) {
      const std::string narrowed_by =
          document_["asked"].value("narrowed_by", "");
      Say("note",
          narrowed_by.empty()
              ? "There are no operations in this trace."
              : "No operation of this trace is left by " + narrowed_by + ".");
      return;
    }
    const Json& time = document_["time"];
    std::string text = CountText(count, "operation", "operations");
    // Of one operation there is no time between.
    if (time.contains("length_ns") && Number(time["length_ns"]) != 0) {
      text += " in " + SpanText(Number(time["length_ns"]));
    }
    const Json& tables = document_["tables"];
    const auto names = [&](const char* table) {
      return tables[table]["rows"].size() + Number(tables[table]["left_out"]);
    };
    const bool exact = tables["files"]["exact"].get<bool>();
    text += (exact ? ", under " : ", under more than ") +
            CountText(names("files"), "name", "names") + ", by " +
            CountText(names("commands"), "command", "commands") + " of " +
            CountText(names("users"), "user", "users") + ".";
    Say("info", std::move(text));
  }

  // "build.trace: 12,345 operations in 10.0 s, counted by operation and
  // command; most often open, cc1plus (4,000, 32 %); none failed".
  void SayWhatWasCounted(const Json& table) {
    const uint64_t count = Number(table["sum"][0]);
    std::string text = table["trace"].get<std::string>() + ": " +
                       CountText(count, "operation", "operations") + " in " +
                       SpanText(Number(table["length_ns"])) + ", counted " +
                       table["title"].get<std::string>();
    const Json& rows = table["rows"];
    const size_t keys = table["by"].size();
    if (keys != 0 && !rows.empty()) {
      std::string most;
      for (size_t i = 0; i < keys; ++i) {
        most += (i == 0 ? "" : ", ") + rows[0][i].get<std::string>();
      }
      const uint64_t times = Number(rows[0][keys]);
      text += "; most often " + most + " (" + CountText(times) + ", " +
              ShareText(times, count) + ")";
    }
    for (size_t i = 1; i < table["values"].size(); ++i) {
      const std::string value = table["values"][i];
      const Json& sums = table["sum"];
      const uint64_t sum = Number(sums[i]);
      if (value == "errors") {
        text += sum == 0 ? std::string("; none failed")
                         : "; " + CountText(sum) + " failed (" +
                               ShareText(sum, count) + ")";
      } else if (value == "bytes") {
        text += "; " + SizeText(sum) + " read or written";
      } else if (value == "time_ns") {
        text += "; " + SpanText(sum) + " in all: half of them took at most " +
                SpanText(Number(sums[i + 1])) + ", 99 of 100 at most " +
                SpanText(Number(sums[i + 2])) + ", the slowest one " +
                SpanText(Number(sums[i + 3]));
      }
    }
    Say("info", text + ".");
  }

  // "91 % of the time in the file system went to fsync, nearly all of it to one
  // file".
  void SayWhereTimeGoes() {
    const uint64_t total = Number(totals_["time_ns"]);
    if (total == 0) return;
    const Json& first = document_["operations"][0];
    const std::string op = first["op"];
    const uint64_t time = Number(first["time_ns"]);
    std::string text = ShareText(time, total) +
                       " of the time in the file system (" + SpanText(total) +
                       " in all) went to " + op;
    const auto [file, file_time] = HottestFile(op);
    if (file_time * 2 > time) {
      text +=
          ", " + ShareText(file_time, time) + " of that to one file, " + file;
    }
    Say("info", text + ".");
  }

  // Of the flame graph: the path with most time in that operation.
  std::pair<std::string, uint64_t> HottestFile(const std::string& op) const {
    const Json& flame = document_["flame"];
    const size_t size = flame.contains("name") ? flame["name"].size() : 0;
    // Path below the command, made as nodes come: parents come first.
    std::vector<std::string> paths(size);
    std::vector<size_t> depth(size);
    std::map<std::string, uint64_t> times;
    for (size_t i = 1; i < size; ++i) {
      const size_t parent = flame["parent"][i].get<size_t>();
      depth[i] = depth[parent] + 1;
      const std::string& name = flame["name"][i].get_ref<const std::string&>();
      if (depth[i] > 1) paths[i] = paths[parent] + name;
      if (name == op && flame["time_ns"][i] != 0) {
        times[paths[parent]] += Number(flame["time_ns"][i]);
      }
    }
    const auto most = std::max_element(
        times.begin(), times.end(),
        [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == times.end()) return {"", 0};
    return *most;
  }

  void SayWhatMoves() {
    const uint64_t read = Number(totals_["read"]);
    const uint64_t written = Number(totals_["written"]);
    if (read + written == 0) {
      Say("info", "No data was read or written.");
      return;
    }
    std::string text =
        SizeText(read) + " were read and " + SizeText(written) + " written";
    for (const auto& [way, word, bytes] :
         {std::tuple{"read", "read", read},
          std::tuple{"write", "written", written}}) {
      uint64_t consecutive = 0;
      uint64_t all = 0;
      for (const Json& row : document_["access"][way]["classes"]) {
        all += Number(row[2]);
        if (row[0] == "consecutive" || row[0] == "first") {
          consecutive += Number(row[2]);
        }
      }
      if (bytes == 0 || all == 0) continue;
      text += "; " + ShareText(consecutive, all) + " of what was " + word +
              " in the order of the file";
    }
    Say("info", text + ".");
  }

  void SayHowLong() {
    if (Number(totals_["longest_ns"]) == 0) return;
    std::string text = "Half of the operations took at most " +
                       SpanText(Number(totals_["p50_ns"])) +
                       ", 99 of 100 at most " +
                       SpanText(Number(totals_["p99_ns"]));
    const Json& slowest = document_["slowest"];
    if (!slowest.empty()) {
      const Json& row = slowest[0];
      text += "; the slowest one, " + row[2].get<std::string>() + " of " +
              row[6].get<std::string>() + ", took " + SpanText(Number(row[1]));
    }
    Say("info", text + ".");
  }

  void SayWhatFails() {
    const uint64_t errors = Number(totals_["errors"]);
    if (errors == 0) {
      Say("info", "No operation failed.");
      return;
    }
    std::string text = CountText(errors, "operation", "operations") +
                       " failed (" +
                       ShareText(errors, Number(totals_["count"])) + ")";
    const Json& rows = document_["errors"]["rows"];
    if (!rows.empty()) {
      text += ", most often " + rows[0][1].get<std::string>() + " with " +
              rows[0][0].get<std::string>() + " by " +
              rows[0][2].get<std::string>() + " (" +
              CountText(Number(rows[0][3])) + ")";
    }
    Say("info", text + ".");
  }

  const Json& document_;
  const Json& totals_;
  Json sentences_ = Json::array();
};

}  // namespace

Json SummaryAsJson(const Json& document) {
  return Summary(document).Sentences();
}

}  // namespace tracefs::report

// Parts of the document about what was counted instead of recorded.
#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "tracefs/report/document_parts.h"
#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

// Of all tables together.

// The words that readers know parts of a key by.
std::string WordOf(std::string_view label) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"op", "operation"},  {"comm", "command"},
      {"uid", "user"},      {"gid", "group"},
      {"pid", "process"},   {"tid", "thread"},
      {"sid", "session"},   {"ppid", "parent process"},
      {"ext", "extension"}, {"pgid", "process group"},
      {"dir", "directory"}, {"ino", "inode"},
      {"errno", "error"}};
  for (const auto& [key, word] : kWords) {
    if (key == label) return std::string(word);
  }
  return TextOf(label, 100);
}

struct Value {
  const char* name;
  bool CountedTable::*has;
  std::function<uint64_t(const CountedSums&)> of;
};

std::vector<Value> ValuesOf(const CountedTable& table) {
  const auto quantile = [](double share) {
    return [share](const CountedSums& sums) {
      return sums.latency.Quantile(share, sums.Times());
    };
  };
  std::vector<Value> values = {
      {"count", nullptr, [](const CountedSums& s) { return s.count; }},
      {"errors", &CountedTable::has_errors,
       [](const CountedSums& s) { return s.errors; }},
      {"bytes", &CountedTable::has_bytes,
       [](const CountedSums& s) { return s.bytes; }},
      {"time_ns", &CountedTable::has_latency,
       [](const CountedSums& s) { return s.time_ns; }},
      {"p50_ns", &CountedTable::has_latency, quantile(0.5)},
      {"p99_ns", &CountedTable::has_latency, quantile(0.99)},
      {"longest_ns", &CountedTable::has_latency,
       [](const CountedSums& s) { return s.max_ns; }}};
  std::erase_if(values, [&](const Value& value) {
    return value.has != nullptr && !(table.*value.has);
  });
  return values;
}

Json NumbersOf(const CountedSums& sums, const std::vector<Value>& values) {
  Json numbers = Json::array();
  for (const Value& value : values) numbers.push_back(value.of(sums));
  return numbers;
}

Json TableAsJson(const CountedTable& table, uint64_t origin,
                 const std::string& trace, size_t* rows_left,
                 size_t* bytes_left, uint64_t* left_out) {
  const CountedRows& counted = table.rows();
  const std::vector<Value> values = ValuesOf(table);
  Json by = Json::array();
  std::string title;
  for (size_t i = 0; i < table.labels.size(); ++i) {
    by.push_back(WordOf(table.labels[i]));
    title += (i == 0                         ? "by "
              : i + 1 == table.labels.size() ? " and "
                                             : ", ") +
             by.back().get<std::string>();
  }
  if (title.empty()) title = "all together";
  using Row = decltype(counted.by_key)::value_type;
  std::vector<const Row*> order;
  for (const Row& row : counted.by_key) order.push_back(&row);
  std::stable_sort(order.begin(), order.end(), [](const Row* a, const Row* b) {
    return a->second.count > b->second.count;
  });
  CountedSums other = counted.other;
  uint64_t others = counted.left_out;
  Json rows = Json::array();
  for (const Row* row : order) {
    Json cells = Json::array();
    size_t bytes = 0;
    for (size_t i = 0; i < table.labels.size(); ++i) {
      std::string text =
          i < row->first.size() ? TextOf(row->first[i], 200) : "-";
      bytes += EmbeddedBytes(text);
      cells.push_back(std::move(text));
    }
    if (*rows_left == 0 || bytes > *bytes_left) {
      ++others;
      other.Add(row->second);
      other.latency.Clear();  // of all: not known
      continue;
    }
    --*rows_left;
    *bytes_left -= bytes;
    for (Json& number : NumbersOf(row->second, values)) {
      cells.push_back(std::move(number));
    }
    rows.push_back(std::move(cells));
  }
  *left_out += others;
  Json names = Json::array();
  for (const Value& value : values) names.push_back(value.name);
  return {
      {"trace", trace},
      {"tracer", table.tracer},
      {"aggregate", table.aggregate},
      {"title", title},
      {"by", std::move(by)},
      {"values", std::move(names)},
      {"begin_ns", Since(origin, counted.real_from_ns)},
      {"length_ns", std::max(counted.real_to_ns, counted.real_from_ns) -
                        counted.real_from_ns},
      {"rows", std::move(rows)},
      {"other", other.count == 0 ? Json(nullptr) : NumbersOf(other, values)},
      {"sum", NumbersOf(counted.sum, values)}};
}

// For each trace that has no operations one by one the table that has counted
// most: others have counted the same ones, in other ways.
std::vector<CountedTable*> TablesOfAll(Collector& collector) {
  std::map<size_t, CountedTable*> largest;
  for (CountedTable* const table : collector.counted()) {
    if (collector.HasOperations(table->trace)) continue;
    CountedTable*& best = largest[table->trace];
    const auto rank = [](const CountedTable& it) {
      return std::pair{it.rows().sum.count, it.KnowsOperations()};
    };
    if (best == nullptr || rank(*table) > rank(*best)) best = table;
  }
  std::vector<CountedTable*> tables;
  for (const auto& [trace, table] : largest) tables.push_back(table);
  return tables;
}

}  // namespace

Json CountedAsJson(Collector& collector,
                   const std::vector<const format::TraceReader*>& traces,
                   Json* notes) {
  const uint64_t origin = OriginOf(collector);
  size_t rows_left = kMostTableRows;
  size_t bytes_left = kTableNameBytes;
  uint64_t left_out = 0;
  const std::vector<CountedTable*> chosen = TablesOfAll(collector);
  Json tables = Json::array();
  for (const CountedTable* const table : collector.counted()) {
    const std::string trace = table->trace < traces.size()
                                  ? TextOf(traces[table->trace]->context().name)
                                  : "";
    Json json =
        TableAsJson(*table, origin, trace, &rows_left, &bytes_left, &left_out);
    json["in_timeline"] = std::ranges::find(chosen, table) != chosen.end();
    tables.push_back(std::move(json));
  }
  if (left_out != 0) {
    notes->push_back("counted: " + CountText(left_out) +
                     " keys are left out, and part of the others");
  }
  if (const uint64_t more = collector.counted_left_out()) {
    notes->push_back("counted: " + CountText(more) +
                     " numbers of further aggregate drivers are left out");
  }
  if (collector.counted_cut()) {
    notes->push_back(
        "counted: what an aggregate driver counted over a time that --from or "
        "--to cuts is left out");
  }
  return tables;
}

Json CountedLayersAsJson(
    Collector& collector,
    const std::vector<const format::TraceReader*>& traces) {
  const Bins fine = collector.grid().fine();
  std::map<std::string, std::vector<uint64_t>> layers;
  const std::vector<CountedTable*> tables = TablesOfAll(collector);
  for (CountedTable* const table : tables) {
    for (auto& [op, row] : table->bins) {
      std::string name = !op.empty()                ? op
                         : table->KnowsOperations() ? "other keys"
                                                    : "all operations";
      if (op.empty() && tables.size() > 1 && table->trace < traces.size()) {
        name += " of " + TextOf(traces[table->trace]->context().name, 40);
      }
      std::vector<uint64_t>& sums = layers[name];
      sums.resize(fine.size);
      const auto& numbers = row.Numbers(fine);
      for (size_t i = 0; i < fine.size; ++i)
        sums[i] = tally::AddTo(sums[i], numbers[i]);
    }
  }
  const bool beside = collector.total().count != 0;
  Json result = Json::array();
  for (const auto& [name, bins] : layers) {
    uint64_t count = 0;
    for (const uint64_t number : bins) count = tally::AddTo(count, number);
    result.push_back({{"name", beside ? name + " (counted)" : name},
                      {"count", count},
                      {"bins", bins}});
  }
  return result;
}

}  // namespace tracefs::report

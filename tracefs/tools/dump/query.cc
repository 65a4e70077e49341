#include "tracefs/tools/dump/query.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tracefs/command/caret.h"
#include "tracefs/command/paged_output.h"
#include "tracefs/command/progress.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/group_counted.h"
#include "tracefs/query/group_traces.h"
#include "tracefs/query/grouping.h"
#include "tracefs/query/pictures.h"
#include "tracefs/query/table_text.h"
#include "tracefs/reader/opaque_fields.h"
#include "tracefs/reader/record_filter.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/dump/dump.h"
#include "tracefs/tools/dump/main.h"

namespace tracefs {
namespace {

constexpr size_t kTopOnTerminal = 20;
// The number of periods of a plot if their length is not given.
constexpr uint64_t kPlotPeriods = 60;

// Rows of one period each: `top` of them, and what all others have together.
void CutPeriods(size_t top, const std::string& sort, query::Table* table) {
  std::vector<query::Row> rows;
  (void)query::Arrange({.sort = "-time"}, table);  // it has such a column
  for (size_t i = 0; i < table->rows.size();) {
    query::Table period;
    period.columns = table->columns;
    const query::Value time = table->rows[i][0];
    while (i < table->rows.size() && table->rows[i][0].number == time.number &&
           table->rows[i][0].present == time.present) {
      period.rows.push_back(std::move(table->rows[i++]));
    }
    (void)query::Arrange({.sort = sort}, &period);
    const size_t had = period.rows.size();
    (void)query::Arrange({.top = top}, &period);
    std::ranges::move(period.rows, std::back_inserter(rows));
    if (!period.other) continue;
    query::Row other = *std::move(period.other);
    other[0] = time;
    if (period.columns.size() > 1) {
      other[1] = query::Value::Text("other(" + std::to_string(had - top) + ")");
    }
    rows.push_back(std::move(other));
  }
  table->rows = std::move(rows);
}

class Querier {
 public:
  Querier(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
          const std::atomic<bool>& stop)
      : options_(options),
        query_(*options.query),
        out_(out),
        err_(err),
        stop_(stop) {}

  QueryEnd Run() {
    const int status = Answer();
    return {status, input_ != nullptr && input_->AnythingRead()};
  }

 private:
  int Answer() {
    query::Table table;
    const Status asked = Ask(&table);
    progress_.reset();
    if (!asked.ok()) return Complain(asked);
    table.begin_ns = input_->span().begin_ns;
    if (Status s = Print(&table); !s.ok()) return Complain(s);
    err_.Append(input_->Problems(kDumpSays));
    return input_->ExitCode();
  }

  int Complain(const Status& status) {
    err_.Append(kDumpSays + status.message() + "\n" +
                CaretOnTerminal(status.message(), options_.filter));
    return ExitStatus(status);
  }

  reader::InputOptions Input() const {
    reader::InputOptions input = InputOf(options_);
    input.everything = everything_;
    if (query_.hist == "size") {
      constexpr char kMoving[] =
          "op IN { read write copy_file_range } AND errno = 0";
      input.filter = input.filter.empty()
                         ? kMoving
                         : "(" + input.filter + "\n) AND " + kMoving;
    }
    return input;
  }

  Status Open(reader::InputSinks sinks) {
    if (!progress_) progress_.emplace(options_.traces);
    if (progress_->shown()) {
      sinks.progress = [this](uint64_t bytes) { progress_->Tell(bytes); };
    }
    if (input_ == nullptr) {  // once, however often it is read
      sinks.warn = [this](const std::string& text) {
        err_.Append(kDumpSays + text + "\n");
      };
    }
    auto input = reader::TraceInput::Open(Input(), std::move(sinks));
    if (!input.ok()) return input.status();
    input_ = *std::move(input);
    input_->StopAt(&stop_);
    return {};
  }

  // As it was given: in a longer one its places would be others.
  Status CheckFilter() const {
    const reader::InputOptions input = InputOf(options_);
    if (input.filter.empty()) return {};
    return reader::RecordFilter::Compile(input.filter, "--filter", input.utc)
        .status();
  }

  Status Ask(query::Table* table) {
    if (Status s = CheckFilter(); !s.ok()) return s;
    if (query_.longest) return AskLongest(table);
    if (IsDerivedHistogram(query_.hist)) return AskDerived(table);
    query::Grouping* processes = nullptr;  // once there is one
    reader::InputSinks sinks;
    // With it batches are not decoded by several threads.
    everything_ = query_.group.follows_files();
    if (query_.group.needs_records()) {
      sinks.process = [&processes](const ProcessRecord& record) {
        if (processes != nullptr) processes->TakeProcess(record);
      };
    }
    if (Status s = Open(std::move(sinks)); !s.ok()) return s;
    query::GroupSpec spec = query_.group;
    if (!query_.plot.empty() && spec.every_ns == 0) {
      const TimeRange span = input_->span();
      spec.every_ns = std::max<uint64_t>(
          1, (span.end_ns - span.begin_ns) / kPlotPeriods + 1);
    }
    query::Grouping grouping(spec);
    processes = &grouping;
    if (Status s = Group(&grouping); !s.ok()) return s;
    if (spec.exact) {
      auto exact = grouping.FinishExact(
          IsPlainTable() ? query::Arrangement{.sort = Sort(), .top = Top()}
                         : query::Arrangement());
      if (!exact.ok()) return exact.status();
      *table = *std::move(exact);
    } else {
      *table = IsPlainTable() ? grouping.FinishLazily() : grouping.Finish();
    }
    if (!query_.hist.empty()) {
      *table = query::HistogramTable(
          *table, query_.hist == "latency" ? Unit::kDuration : Unit::kBytes,
          query::HistogramCuts(query_.width));
    } else if (!query_.plot.empty()) {
      auto plot =
          query::PlotTable(*table, query_.plot, spec.every_ns, HasUtf8());
      if (!plot.ok()) return plot.status();
      *table = *std::move(plot);
    }
    if (counts_cut_) {
      table->notes.emplace_back(
          "what an aggregate driver counted over a time that --from or --to "
          "cuts is left out");
    }
    if (!by_counts_) NoteCounts(table);
    return {};
  }

  // Operations that a tracer has counted by itself are not added to others.
  void NoteCounts(query::Table* table) const {
    size_t traces = 0;
    for (size_t i = 0; i < input_->size(); ++i) {
      const auto& stats = input_->trace(i).stats();
      if (stats.events == 0 && stats.aggregates != 0) ++traces;
    }
    if (traces == 0) return;
    table->notes.push_back(
        std::to_string(traces) + (traces == 1 ? " trace has" : " traces have") +
        " no operations here, but counts of an aggregate driver, which are not "
        "in the answer: ask about such traces alone, without --filter");
  }

  Status Group(query::Grouping* grouping) {
    if (Status s = query::GroupTraces(input_.get(), grouping); !s.ok()) {
      return s;
    }
    NoteOpaque(*grouping);
    return Counted(grouping);
  }

  // Fields that are counted, and those they are counted by.
  void NoteOpaque(const query::Grouping& grouping) {
    uint64_t fields = 0;
    for (const reader::ColumnSpec& column : *grouping.columns()) {
      const std::optional<Field>& field = column.field->field;
      if (field && IsNumeric(*field)) fields |= Bit(*field);
    }
    for (size_t i = 0; i < input_->size(); ++i) {
      const format::TraceContext& trace = input_->trace(i).context();
      const std::string opaque = reader::OpaqueAmong(fields, trace);
      if (opaque.empty()) continue;
      err_.Append(kDumpSays + TerminalWord(trace.name) + ": " + opaque + "\n");
    }
  }

  // Where there is no operation, but what a tracer has counted by itself, that
  // is the answer, if it was counted by what is asked for.
  Status Counted(query::Grouping* grouping) {
    uint64_t operations = 0;
    for (size_t i = 0; i < input_->size(); ++i) {
      operations += input_->trace(i).stats().events;
    }
    if (operations != 0 || !options_.filter.empty() ||
        std::ranges::count(options_.traces, "-") != 0) {
      return {};
    }
    query::CountedChoice choice;
    bool total_cut = false;
    const auto read = [&, this](auto&& take) {
      reader::InputSinks sinks;
      sinks.aggregate = [&, this](size_t trace,
                                  const format::AggregateRecord& record) {
        if (record.repeated) return;
        using Share = reader::TraceInput::Share;
        const Share share = input_->ShareOf(record);
        if (share == Share::kAll) take(trace, record);
        // Its periods tell what a total does, where there are any.
        if (share == Share::kSome) {
          (record.total ? total_cut : counts_cut_) = true;
        }
      };
      if (Status s = Open(std::move(sinks)); !s.ok()) return s;
      input_->ForEach([](const format::Record&, size_t) {});
      return Status();
    };
    const Status seen =
        read([&choice](size_t trace, const format::AggregateRecord& record) {
          choice.Take(trace, record);
        });
    counts_cut_ |= total_cut && choice.empty();
    by_counts_ = counts_cut_ || !choice.empty();
    if (!seen.ok() || choice.empty()) return seen;
    for (size_t i = 0; i < input_->size(); ++i) {
      choice.TakeHeader(i, input_->trace(i).description().header);
    }
    if (Status s = choice.Choose(grouping->spec()); !s.ok()) return s;
    Status status;
    const Status added =
        read([&](size_t trace, const format::AggregateRecord& record) {
          if (!status.ok() || !choice.Wants(trace, record)) return;
          status = grouping->AddCounted(record,
                                        choice.CountsBothFiles(trace, record));
        });
    return added.ok() ? status : added;
  }

  Status AskDerived(query::Table* table) {
    const bool lives = query_.hist == "lifetime";
    const auto analysis = (lives ? query::MakeLifetimes : query::MakePauses)(
        {.histogram_width = query_.width});
    everything_ = analysis->follows_files();
    reader::InputSinks sinks;
    sinks.process = [&analysis](const ProcessRecord& record) {
      analysis->TakeProcess(record);
    };
    if (Status s = Open(std::move(sinks)); !s.ok()) return s;
    input_->ForEach([&](const format::Record& record, size_t trace) {
      if (input_->asked()) {
        analysis->Take(record, trace);
      } else {
        analysis->Pass(record, trace);
      }
    });
    *table = analysis->Finish()[query_.hist == "gap" ? 0 : 1];
    table->title.clear();
    return {};
  }

  Status AskLongest(query::Table* table) {
    const auto longest = query::MakeSlowest({.top = query_.limit});
    if (Status s = Open({}); !s.ok()) return s;
    input_->ForEach([&](const format::Record& record, size_t trace) {
      longest->Take(record, trace);
    });
    *table = longest->Finish().front();
    return {};
  }

  bool IsGrouped() const { return !query_.longest && query_.hist.empty(); }
  // A row a group, of the whole trace.
  bool IsPlainTable() const {
    return IsGrouped() && query_.plot.empty() && query_.group.every_ns == 0;
  }
  // Rows that are shown; 0: all.
  size_t Top() const {
    const bool terminal = options_.output.empty() && ::isatty(1) == 1;
    return query_.top.value_or(terminal && query_.hist.empty() ? kTopOnTerminal
                                                               : 0);
  }
  std::string Sort() const {
    return query_.sort.empty() && IsGrouped() && query_.plot.empty()
               ? query::ColumnOf(query_.group.values.front()).name
               : query_.sort;
  }

  Status Print(query::Table* table) {
    const size_t top = Top();
    std::string sort = Sort();
    if (IsGrouped() && query_.group.every_ns != 0 && query_.plot.empty()) {
      if (!table->Find(sort.starts_with('-') ? sort.substr(1) : sort)) {
        return query::Arrange({.sort = sort}, table).Prefixed("--sort");
      }
      CutPeriods(top == 0 ? SIZE_MAX : top, sort, table);
      sort.clear();
      if (Status s = query::Arrange({.limit = query_.limit}, table); !s.ok()) {
        return s;
      }
    } else if (Status s = query::Arrange(
                   {.sort = sort, .top = top, .limit = query_.limit}, table);
               !s.ok()) {
      return s.Prefixed("--sort");
    }
    if (Status s = query::Arrange({.columns = query_.columns}, table);
        !s.ok()) {
      return s.Prefixed("--columns");
    }
    const query::TableStyle style = {
        .figures =
            query_.raw ? query::Figures::kRaw : query::Figures::kForPeople,
        .utf8 = HasUtf8(),
        .columns = options_.output.empty() ? TerminalColumns() : 0,
        .csv_reader = options_.exported.Choice("safe") == "no"
                          ? CsvReader::kProgram
                          : CsvReader::kSpreadsheet};
    query::WriteTable(*table, options_.format, style, &out_);
    if (options_.format != "text") {
      for (const std::string& note : table->notes) {
        err_.Append(kDumpSays + note + "\n");
      }
    }
    return {};
  }

  using Unit = query::Unit;
  const DumpOptions& options_;
  const QueryOptions& query_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  const std::atomic<bool>& stop_;
  std::optional<Progress> progress_;
  std::unique_ptr<reader::TraceInput> input_;
  bool everything_ = false;  // it follows files
  bool by_counts_ = false;   // what was counted is the answer
  bool counts_cut_ = false;  // but not all of it
};

}  // namespace

QueryEnd PrintQuery(const DumpOptions& options, OutputBuffer& out,
                    OutputBuffer& err, const std::atomic<bool>& stop) {
  return Querier(options, out, err, stop).Run();
}

}  // namespace tracefs

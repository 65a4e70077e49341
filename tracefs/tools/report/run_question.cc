#include "tracefs/tools/report/run_question.h"

#include <errno.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "tracefs/base/file_io.h"
#include "tracefs/command/caret.h"
#include "tracefs/command/progress.h"
#include "tracefs/query/table_text.h"
#include "tracefs/reader/record_filter.h"
#include "tracefs/reader/trace_limits.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/report/main.h"
#include "tracefs/tools/report/question.h"
#include "tracefs/tools/report/rows.h"

namespace tracefs {
namespace {

constexpr size_t kMaxQueryBytes = size_t{1} << 20;

// A part that is being answered.
struct Running {
  QuestionPart part;
  std::optional<reader::RecordFilter> filter;
  std::unique_ptr<query::Analysis> analysis;
  bool everything = false;  // it follows files
};

class Questioner {
 public:
  Questioner(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err)
      : options_(options), out_(out), err_(err) {}

  int Run() {
    const Result<std::string> text = QueryText(options_);
    if (!text.ok()) return Complain(text.status());
    if (options_.print) {
      out_.Append(*text);
      return 0;
    }
    auto parts = ParseQuestion(*text, options_.query);
    if (!parts.ok()) return Complain(parts.status());
    if (Status s = Prepare(*std::move(parts)); !s.ok()) return Complain(s);
    if (Status s = Read(); !s.ok()) return Complain(s);
    if (Status s = Print(); !s.ok()) return Complain(s);
    err_.Append(input_->Problems(kReportSays));
    int exit_status = input_->ExitCode();
    for (const Running& running : running_) {
      const Status verdict = running.analysis->Verdict();
      if (!verdict.ok()) exit_status = std::max(exit_status, Complain(verdict));
    }
    return exit_status;
  }

 private:
  int Complain(const Status& status) {
    err_.Append(kReportSays + status.message() + "\n" +
                CaretOnTerminal(status.message(), options_.input.filter));
    return ExitStatus(status);
  }

  Status Prepare(std::vector<QuestionPart> parts) {
    for (QuestionPart& part : parts) {
      Running running;
      if (!part.filter.empty()) {
        auto filter = reader::RecordFilter::Compile(
            part.filter, "filter of [" + part.title + "]", options_.input.utc);
        if (!filter.ok()) return filter.status();
        running.filter.emplace(*std::move(filter));
      }
      if (!options_.sort.empty()) part.sort = options_.sort;
      if (options_.top) part.top = *options_.top;
      if (!options_.columns.empty()) part.columns = options_.columns;
      query::AnalysisOptions how;
      how.top = part.top.value_or(kDefaultTop);
      if (how.top == 0) how.top = SIZE_MAX;
      if (!options_.words.empty()) how.path = options_.words[0];
      how.asked = AskedWith(options_);
      if (!part.filter.empty()) {
        std::string& narrowed_by = how.asked.narrowed_by;
        narrowed_by += std::string(narrowed_by.empty() ? "" : ", ") +
                       "the filter of [" + part.title + "]";
      }
      how.group = *part.Group();  // it was looked at
      running.analysis = part.analysis->make(how);
      running.everything = running.analysis->follows_files();
      running.part = std::move(part);
      running_.push_back(std::move(running));
    }
    return {};
  }

  Status Read() {
    reader::InputSinks sinks;
    sinks.process_of = [this](size_t trace, const ProcessRecord& record) {
      const bool asked = input_->window().Has(record.real_ns);
      for (Running& running : running_) {
        if (!asked && !running.everything) continue;
        running.analysis->TakeProcessOf(input_->trace(trace).context(), record);
      }
    };
    sinks.warn = [this](const std::string& text) {
      err_.Append(kReportSays + text + "\n");
    };
    progress_.emplace(options_.input.traces);
    sinks.progress = [this](uint64_t bytes) { progress_->Tell(bytes); };
    reader::InputOptions options = options_.input;
    options.everything = std::ranges::any_of(running_, &Running::everything);
    auto input = reader::TraceInput::Open(options, std::move(sinks));
    if (!input.ok()) return input.status();
    input_ = *std::move(input);
    input_->ForEach([this](format::Record& record, size_t trace) {
      for (Running& running : running_) {
        const bool asked = input_->asked() &&
                           (!running.filter || running.filter->Keep(record));
        if (asked) {
          running.analysis->Take(record, trace);
        } else if (running.everything) {
          running.analysis->Pass(record, trace);
        }
      }
    });
    progress_.reset();
    return {};
  }

  // Where several tables answer, an option is for those it fits.
  static Status Fit(const QuestionPart& part, query::Table* table) {
    const std::string_view sort = part.sort;
    const std::string_view name = sort.substr(sort.starts_with('-') ? 1 : 0);
    query::Arrangement how = {.sort = part.sort,
                              .top = part.top.value_or(kDefaultTop),
                              .columns = part.columns};
    const bool main = table->title == part.title;
    if (!main) {
      if (!table->Find(name)) how.sort.clear();
      how.columns.clear();
      how.top = 0;
    }
    return query::Arrange(how, table);
  }

  // What the traces cannot tell.
  void NoteLimits(query::Table* table) const {
    for (size_t i = 0; i < input_->size(); ++i) {
      const format::TraceContext& trace = input_->trace(i).context();
      for (const std::string& limit : reader::LimitsOf(trace)) {
        table->notes.push_back(TerminalWord(trace.name) + ": " + limit);
      }
    }
  }

  // Where it cannot be told which file was which.
  void NoteFiles(query::Table* table) const {
    for (size_t i = 0; i < input_->size(); ++i) {
      const format::TraceContext& trace = input_->trace(i).context();
      const std::string limit = reader::LimitOfFiles(trace);
      if (limit.empty()) continue;
      table->notes.push_back(TerminalWord(trace.name) + ": " + limit);
    }
  }

  Status Print() {
    std::vector<const format::TraceContext*> traces;
    for (size_t i = 0; i < input_->size(); ++i) {
      traces.push_back(&input_->trace(i).context());
    }
    std::vector<query::Table> tables;
    for (Running& running : running_) {
      running.analysis->TakeTraces(traces);
      bool first = true;
      for (query::Table& table : running.analysis->Finish()) {
        if (std::exchange(first, false)) {
          if (running.part.analysis->says_never) NoteLimits(&table);
          if (running.everything) NoteFiles(&table);
        }
        if (table.title.empty()) table.title = running.part.title;
        table.begin_ns = input_->span().begin_ns;
        if (Status s = Fit(running.part, &table); !s.ok()) return s;
        tables.push_back(std::move(table));
      }
    }
    if (options_.format == "json") {
      out_.Append(query::JsonOf(tables));
      return {};
    }
    for (const query::Table& table : tables) {
      if (&table != tables.data()) out_.Append("\n");
      query::WriteTable(table, options_.format, options_.table_style, &out_);
    }
    return {};
  }

  const ReportOptions& options_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  std::vector<Running> running_;
  std::optional<Progress> progress_;           // while reading
  std::unique_ptr<reader::TraceInput> input_;  // its sinks use the above
};

}  // namespace

Result<std::string> QueryText(const ReportOptions& options) {
  if (options.query.empty()) return std::string(options.row->query);
  const UniqueFd fd(::open(options.query.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return Status::System(errno, TerminalWord(options.query));
  return ReadText(fd.get(), kMaxQueryBytes, TerminalWord(options.query));
}

int RunQuestion(const ReportOptions& options, OutputBuffer& out,
                OutputBuffer& err) {
  return Questioner(options, out, err).Run();
}

}  // namespace tracefs

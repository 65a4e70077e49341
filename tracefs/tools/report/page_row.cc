#include "tracefs/tools/report/page_row.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tracefs/base/join.h"
#include "tracefs/command/progress.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/report/collector.h"
#include "tracefs/report/document.h"
#include "tracefs/report/page.h"
#include "tracefs/report/pictures.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/report/main.h"
#include "tracefs/tools/report/raster.h"

namespace tracefs {
namespace {

// Without its folder: the same trace makes the same page wherever it lies.
std::string NameOf(std::string_view trace) {
  while (trace.size() > 1 && trace.ends_with('/')) trace.remove_suffix(1);
  const size_t slash = trace.rfind('/');
  if (slash != trace.npos && slash + 1 < trace.size()) {
    trace.remove_prefix(slash + 1);
  }
  return std::string(trace);
}

std::string TitleOf(const ReportOptions& options) {
  if (!options.title.empty()) return options.title;
  return JoinWords(options.input.traces, ", ", &NameOf);
}

// For commands that the page shows, wherever it is read: keys lie elsewhere.
HeadlineFacts AskedOnPage(const ReportOptions& options) {
  HeadlineFacts asked = AskedWith(options);
  for (std::string& trace : asked.traces) trace = NameOf(trace);
  std::erase_if(asked.options, [](const std::string& option) {
    return option.starts_with("--key");
  });
  return asked;
}

Result<std::string> Written(const ReportOptions& options,
                            const report::Json& document) {
  const std::string& format = options.format;
  if (format == "json") return document.dump(1) + "\n";
  if (format == "md") return report::MakeMarkdown(document);
  if (format == "html") return report::MakePage(document);
  const report::Picture* const picture = report::FindPicture(options.panel);
  if (format == "svg") {
    return picture->draw(document).Finish(report::PictureStyle()) + "\n";
  }
  return RasterOf(picture->draw(document).Finish(report::PlainPictureStyle()));
}

Status CheckPanel(const ReportOptions& options) {
  const bool one = options.format == "svg" || options.format == "png";
  if (!one && !options.panel.empty()) {
    return Status::Invalid(
        "--panel is for --format svg and png: the others "
        "have all panels");
  }
  if (one && report::FindPicture(options.panel) == nullptr) {
    return Status::Invalid("--format " + options.format +
                           " is a picture of one panel: --panel is one of " +
                           PanelNames());
  }
  return {};
}

}  // namespace

std::string PanelNames() {
  return JoinWords(report::Pictures(), ", ", &report::Picture::name);
}

report::Json ReadDocument(const ReportOptions& options, OutputBuffer& err,
                          int* status) {
  // Large, and made of arrays: not on the stack.
  const auto collector = std::make_unique<report::Collector>();
  std::unique_ptr<reader::TraceInput> input;  // its sinks use it
  reader::InputSinks sinks;
  sinks.process_of = [&](size_t trace, const ProcessRecord& record) {
    collector->AddProcess(record, trace,
                          MountPointOf(input->trace(trace).context()));
  };
  sinks.aggregate = [&](size_t trace, const format::AggregateRecord& record) {
    using Share = reader::TraceInput::Share;
    const Share share = input->ShareOf(record);
    if (share == Share::kAll) collector->AddCounted(record, trace);
    if (share == Share::kSome) collector->CutCounted(record);
  };
  sinks.loss = [&](const format::Report& report) {
    collector->AddLoss(report);
  };
  sinks.warn = [&](const std::string& warning) {
    err.Append(kReportSays + warning + "\n");
  };
  std::optional<Progress> progress(std::in_place, options.input.traces);
  sinks.progress = [&](uint64_t bytes) { progress->Tell(bytes); };
  auto opened = reader::TraceInput::Open(options.input, std::move(sinks));
  if (!opened.ok()) {
    *status = Complain(opened.status(), err);
    return {};
  }
  input = *std::move(opened);
  input->ForEach([&](const format::Record& record, size_t trace) {
    collector->Add(record, trace);
  });
  progress.reset();
  std::vector<const format::TraceReader*> traces;
  for (size_t i = 0; i < input->size(); ++i) {
    traces.push_back(&input->trace(i));
  }
  err.Append(input->Problems(kReportSays));
  *status = input->ExitCode();
  if (*status > 1) return {};
  return report::MakeDocument(*collector, traces,
                              {.title = TitleOf(options),
                               .title_given = !options.title.empty(),
                               .filter = options.input.filter,
                               .from = options.from,
                               .to = options.to,
                               .asked = AskedOnPage(options)});
}

int RunPage(const ReportOptions& options, OutputBuffer& out,
            OutputBuffer& err) {
  if (Status s = CheckPanel(options); !s.ok()) return Complain(s, err);
  int status = 0;
  const report::Json document = ReadDocument(options, err, &status);
  if (status > 1) return status;
  const Result<std::string> text = Written(options, document);
  if (!text.ok()) return Complain(text.status(), err);
  out.Append(*text);
  return status;
}

}  // namespace tracefs

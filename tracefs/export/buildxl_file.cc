#include "tracefs/export/buildxl_file.h"

#include <algorithm>

#include "tracefs/base/printable.h"

namespace tracefs::buildxl {
namespace {

// 0x10000001 is the first number of a path in files of BuildXL's.
constexpr uint64_t kFirstPath = 0x10000000;

std::string Number(uint64_t value) { return std::to_string(value); }

template <typename Names>
std::string NamesText(const Names& names) {
  std::string text = Number(names.size()) + "\n";
  for (const auto& [number, name] : names) {
    text += Number(number) + "=" + std::string(name) + "\n";
  }
  return text;
}

template <typename Names>
void See(Names* names, uint8_t number, std::string_view name) {
  for (const auto& [seen, text] : *names) {
    if (seen == number) return;
  }
  names->emplace_back(number, name);
}

}  // namespace

File::File(const BuildXlOptions& options, build::PathTable& paths,
           const std::shared_ptr<SpoolFile>& spool)
    : options_(options),
      paths_(paths),
      processes_(options.memory_bytes, spool),
      paths_text_(options.memory_bytes, spool),
      operations_(options.memory_bytes, spool),
      extras_(options.memory_bytes, spool),
      attributes_(options.memory_bytes, spool) {}

// `separators`: what would end a field.
std::string File::Safe(std::string_view text, std::string_view separators,
                       std::string_view what) {
  std::string safe;
  while (!text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    const size_t size = std::max<size_t>(point.size, 1);
    const auto byte = static_cast<unsigned char>(text.front());
    const bool breaks = point.size == 0 || byte < 0x20 || byte == 0x7f ||
                        separators.find(text.front()) != separators.npos;
    if (breaks || byte == '%') {
      constexpr char kDigits[] = "0123456789ABCDEF";
      safe += '%';
      safe += kDigits[byte >> 4];
      safe += kDigits[byte & 15];
    } else {
      safe += text.substr(0, size);
    }
    if (breaks && options_.fail_on_escape && status_.ok()) {
      status_ =
          Status::Invalid("BuildXL's format cannot hold " + std::string(what) +
                          " " + Printable(text.substr(0, 80)) +
                          ": --set escape=percent writes its bytes as "
                          "%XX");
    }
    text.remove_prefix(size);
  }
  return safe;
}

uint64_t File::PathNumber(std::string_view path) {
  const build::PathTable::Id id = paths_.Intern(path);
  const auto next = static_cast<uint32_t>(path_numbers_.size() + 1);
  const auto [known, is_new] = path_numbers_.emplace(id, next);
  const uint64_t number = kFirstPath + known->second;
  if (is_new) {
    paths_text_.Append(Number(number) + "=" +
                       Safe(paths_.Text(id), "=,", "the path") + "\n");
  }
  return number;
}

uint64_t File::AddRow(Row row, std::string_view path, const RowFacts& facts) {
  const auto operation = static_cast<uint8_t>(row.operation);
  const auto access = static_cast<uint8_t>(row.access);
  See(&operation_names_, operation, OperationName(row.operation));
  See(&access_names_, access, RequestedName(row.access));
  const std::string id = Number(rows_++);
  operations_.Append(id + "," + Number(facts.pid) + "," +
                     Number(PathNumber(path)) + ",," + Number(operation) + "," +
                     Number(access) + "," + Number(facts.error) +
                     (facts.augmented ? ",1,\n" : ",0,\n"));
  const uint64_t access_id = rows_;
  if (options_.version >= 2) {
    extras_.Append(id + "," + Number(access_id) + "," +
                   Number(facts.correlation) + "\n");
  }
  if (options_.version >= 3) {
    attributes_.Append(id + "," + Number(facts.open_flags) + "," +
                       Number(facts.attributes) + "\n");
  }
  return access_id;
}

void File::AddProcess(const ProcessLine& process) {
  ++process_count_;
  processes_.Append(
      Number(process.pid) + ",\"" + Safe(process.exe, ",\"", "the program") +
      "\"," + Number(process.parent) + "," + Number(process.begin_ticks) + "," +
      Number(process.end_ticks) + "," + Number(process.code) + "\n" +
      Safe(process.line, {}, "the command line") + "\n");
}

void File::Copy(Spool* spool, OutputBuffer* out) {
  if (status_.ok()) status_ = spool->CopyTo(out);
}

Status File::WriteTo(OutputBuffer* out, std::string_view marker) {
  AddProcess({.exe = "tracefs", .line = marker});
  if (!status_.ok()) return status_;
  out->Append(Number(static_cast<uint64_t>(options_.version)) + "\n" +
              NamesText(operation_names_) + NamesText(access_names_) +
              Number(process_count_) + "\n");
  Copy(&processes_, out);
  out->Append(Number(path_numbers_.size()) + "\n");
  Copy(&paths_text_, out);
  out->Append("0\n" + Number(rows_) + "\n");
  Copy(&operations_, out);
  if (options_.version >= 2) {
    out->Append(Number(rows_) + "\n");
    Copy(&extras_, out);
  }
  if (options_.version >= 3) {
    out->Append(Number(rows_) + "\n");
    Copy(&attributes_, out);
  }
  return status_;
}

}  // namespace tracefs::buildxl

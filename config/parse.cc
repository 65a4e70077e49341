// The grammar of a config. It is recursive nowhere: what is nested in braces
// is kept as text.
#include <algorithm>
#include <string>

#include "config/config.h"
#include "config/value.h"
#include "tracefs/base/spelling.h"

namespace tracefs {
namespace {

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool IsNameByte(char c) {
  return IsNameStart(c) || (c >= '0' && c <= '9') || c == '-';
}

// A bare value: printable bytes that mean nothing to the grammar. Bytes above
// 0x7f are UTF-8 in a path.
bool IsBareByte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte <= ' ' || byte == 0x7f) return false;
  return std::string_view(";{}\"#=").find(c) == std::string_view::npos;
}

// Every name and alias of `rows`.
std::vector<std::string_view> KnownNames(std::span<const EntryRow> rows) {
  std::vector<std::string_view> names;
  for (const EntryRow& row : rows) {
    names.push_back(row.name);
    names.insert(names.end(), row.aliases.begin(), row.aliases.end());
  }
  return names;
}

const EntryRow* FindRow(std::span<const EntryRow> rows, std::string_view name) {
  for (const EntryRow& row : rows) {
    if (row.name == name || std::find(row.aliases.begin(), row.aliases.end(),
                                      name) != row.aliases.end()) {
      return &row;
    }
  }
  return nullptr;
}

// " (known: a b c)"
std::string Known(std::span<const EntryRow> rows) {
  std::string text = " (known:";
  for (const EntryRow& row : rows) text += " " + std::string(row.name);
  return text + ")";
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view file,
         const ConfigSchema& schema)
      : in_(text, file), schema_(schema) {}

  Result<Config> Parse() {
    Config config;
    config.file_name = std::string(in_.file());
    for (in_.SkipSpace(); !in_.AtEnd(); in_.SkipSpace()) {
      if (config.tracers.size() == kMaxConfigTracers) {
        return in_.ErrorHere("more than " + std::to_string(kMaxConfigTracers) +
                             " tracers");
      }
      TracerConfig tracer;
      if (Status s = ParseTracer(&tracer); !s.ok()) return s;
      for (const TracerConfig& other : config.tracers) {
        if (!tracer.name.empty() && tracer.name == other.name) {
          return ErrorAt(in_.file(), tracer.position,
                         "a second tracer is named " + Quoted(tracer.name));
        }
      }
      config.tracers.push_back(std::move(tracer));
    }
    if (config.tracers.empty()) {
      return in_.ErrorHere(
          "no tracer; write { { filter } { assembly drivers } { output } }");
    }
    return config;
  }

 private:
  // What stands at the cursor, for "found …".
  std::string Found() const {
    return in_.Found(IsNameByte, "the end of the file");
  }

  Status Expect(char c, std::string_view what) {
    if (in_.Take(c)) return Status::Ok();
    return in_.ErrorHere("expected " + std::string(what) + ", found " +
                         Found());
  }

  Result<std::string> TakeName(std::string_view what) {
    const SourcePosition position = in_.position();
    if (!IsNameStart(in_.Peek())) {
      return in_.ErrorHere("expected " + std::string(what) + ", found " +
                           Found());
    }
    const std::string_view name = in_.TakeWord(IsNameByte);
    if (name.size() > kMaxConfigWordBytes) {
      return ErrorAt(in_.file(), position,
                     "the name " + Quoted(name) + " is longer than " +
                         std::to_string(kMaxConfigWordBytes) + " bytes");
    }
    return std::string(name);
  }

  // Everything up to the '}' that closes the '{' before the cursor; with
  // `to_semicolon`, up to a ';' outside inner braces as well. The cursor stops
  // at that byte.
  Result<std::string> TakeBalanced(SourcePosition open, bool to_semicolon) {
    const size_t begin = in_.offset();
    size_t depth = 0;
    for (;;) {
      in_.SkipSpace();
      if (in_.AtEnd()) {
        return ErrorAt(in_.file(), open, "this '{' is never closed");
      }
      const char c = in_.Peek();
      if (c == '"') {
        const auto string = in_.TakeString(kMaxConfigTextBytes);
        if (!string.ok()) return string.status();
        continue;
      }
      if (c == '\0') return in_.ErrorHere("a NUL byte");
      if (depth == 0 && (c == '}' || (c == ';' && to_semicolon))) {
        return std::string(in_.Since(begin));
      }
      if (c == '{' && ++depth > kMaxConfigNesting) {
        return in_.ErrorHere("more than " + std::to_string(kMaxConfigNesting) +
                             " braces inside each other");
      }
      if (c == '}') --depth;
      in_.Advance();
    }
  }

  Status ParseTracer(TracerConfig* tracer) {
    tracer->position = in_.position();
    if (in_.Peek() != '{') {
      auto name = TakeName("a tracer: '{', or its name and '{'");
      if (!name.ok()) return name.status();
      tracer->name = *name;
    }
    if (Status s = Expect('{', "'{' of a tracer"); !s.ok()) return s;

    in_.SkipSpace();
    SourcePosition open = in_.position();
    if (Status s = Expect('{', "'{' of the filter section"); !s.ok()) return s;
    tracer->filter_position = in_.position();
    auto filter = TakeBalanced(open, /*to_semicolon=*/false);
    if (!filter.ok()) return filter.status();
    tracer->filter = *std::move(filter);
    in_.Advance();

    if (Status s = ParseSection(
            "'{' of the assembly section (a tracer is { { filter } { assembly "
            "drivers } { output filters and driver } })",
            "an assembly driver", schema_.assembly, &tracer->assembly);
        !s.ok()) {
      return s;
    }
    if (Status s = ParseSection(
            "'{' of the output section (a tracer is { { filter } { assembly "
            "drivers } { output filters and driver } })",
            "an output filter or driver", schema_.output, &tracer->output);
        !s.ok()) {
      return s;
    }
    return Expect('}', "'}' that ends the tracer");
  }

  Status ParseSection(std::string_view brace, std::string_view what,
                      std::span<const EntryRow> rows,
                      std::vector<ConfigEntry>* entries) {
    in_.SkipSpace();
    open_ = in_.position();
    if (Status s = Expect('{', brace); !s.ok()) return s;
    for (;;) {
      in_.SkipSpace();
      if (in_.Peek() == '}') break;
      if (in_.Peek() == ';') {
        in_.Advance();
        continue;
      }
      if (in_.AtEnd()) {
        return ErrorAt(in_.file(), open_, "this '{' is never closed");
      }
      if (entries->size() == kMaxConfigEntries) {
        return in_.ErrorHere("more than " + std::to_string(kMaxConfigEntries) +
                             " entries in one section");
      }
      ConfigEntry entry;
      if (Status s = ParseEntry(what, rows, &entry); !s.ok()) return s;
      entries->push_back(std::move(entry));
    }
    if (Status s = CheckOrder(rows, *entries); !s.ok()) return s;
    in_.Advance();
    return Status::Ok();
  }

  // An output section has one driver, and it is the last entry.
  Status CheckOrder(std::span<const EntryRow> rows,
                    const std::vector<ConfigEntry>& entries) const {
    if (rows.data() != schema_.output.data()) return Status::Ok();
    const ConfigEntry* driver = nullptr;
    for (const ConfigEntry& entry : entries) {
      if (driver != nullptr) {
        return ErrorAt(in_.file(), entry.position,
                       Quoted(entry.name) + " comes after the output driver " +
                           Quoted(driver->name) + ", which must come last");
      }
      if (entry.role == EntryRole::kDriver) driver = &entry;
    }
    if (driver != nullptr) return Status::Ok();
    return in_.ErrorHere("the output section names no output driver" +
                         Known(rows));
  }

  Status ParseEntry(std::string_view what, std::span<const EntryRow> rows,
                    ConfigEntry* entry) {
    entry->position = in_.position();
    auto name = TakeName(what);
    if (!name.ok()) return name.status();
    const EntryRow* row = FindRow(rows, *name);
    if (row == nullptr) {
      return ErrorAt(in_.file(), entry->position,
                     Quoted(*name) + " is not " + std::string(what) +
                         DidYouMean(*name, KnownNames(rows)) + Known(rows));
    }
    entry->name = row->name;
    entry->role = row->role;
    if (row->value.type == ValueType::kRest) {
      in_.SkipSpace();
      entry->value.position = in_.position();
      entry->value.type = ValueType::kRest;
      auto text = TakeBalanced(open_, /*to_semicolon=*/true);
      if (!text.ok()) return text.status();
      entry->value.text = *std::move(text);
      const size_t last = entry->value.text.find_last_not_of(" \t\r\n");
      entry->value.text.resize(last == std::string::npos ? 0 : last + 1);
      return Status::Ok();
    }
    if (Status s = ParseValue(row->value, *name, entry->position,
                              row->value.required, &entry->value);
        !s.ok()) {
      return s;
    }
    return ParseOptions(*row, rows, entry);
  }

  Status ParseOptions(const EntryRow& row, std::span<const EntryRow> rows,
                      ConfigEntry* entry) {
    for (;;) {
      in_.SkipSpace();
      if (in_.AtEnd()) {
        return ErrorAt(in_.file(), open_, "this '{' is never closed");
      }
      if (in_.Peek() == ';' || in_.Peek() == '}') break;
      if (entry->options.size() == kMaxConfigOptions) {
        return in_.ErrorHere("more than " + std::to_string(kMaxConfigOptions) +
                             " options");
      }
      ConfigOption option;
      option.position = in_.position();
      auto name =
          TakeName("an option of " + Quoted(entry->name) + ", ';' or '}'");
      if (!name.ok()) return name.status();
      option.name = *name;
      const auto known = std::find_if(
          row.options.begin(), row.options.end(), [&](const OptionRow& o) {
            return o.name == option.name ||
                   (!o.alias.empty() && o.alias == option.name);
          });
      if (known == row.options.end()) {
        return UnknownOption(row, rows, option);
      }
      option.name = known->name;
      if (entry->Find(option.name) != nullptr) {
        return ErrorAt(in_.file(), option.position,
                       "option " + Quoted(option.name) + " is given twice");
      }
      if (Status s =
              ParseValue(*known, "option " + option.name, option.position,
                         known->type != ValueType::kNone, &option.value);
          !s.ok()) {
        return s;
      }
      entry->options.push_back(std::move(option));
    }
    for (const OptionRow& option : row.options) {
      if (option.required && entry->Find(option.name) == nullptr) {
        return ErrorAt(
            in_.file(), entry->position,
            Quoted(entry->name) + " needs the option " + Quoted(option.name));
      }
    }
    return Status::Ok();
  }

  Status UnknownOption(const EntryRow& row, std::span<const EntryRow> rows,
                       const ConfigOption& option) const {
    std::string message =
        Quoted(row.name) + " has no option " + Quoted(option.name);
    if (FindRow(rows, option.name) != nullptr) {
      message += "; is a ';' missing before it?";
    } else {
      std::vector<std::string_view> known;
      for (const OptionRow& o : row.options) known.push_back(o.name);
      message += DidYouMean(option.name, known);
    }
    return ErrorAt(in_.file(), option.position, message);
  }

  // ['=' value]
  Status ParseValue(const OptionRow& row, std::string_view what,
                    SourcePosition owner, bool needed, ConfigValue* value) {
    in_.SkipSpace();
    if (in_.Peek() != '=') {
      return CheckValue(row, ValueForm::kAbsent, what, in_.file(), owner,
                        needed, value);
    }
    in_.Advance();
    in_.SkipSpace();
    value->position = in_.position();
    ValueForm form = ValueForm::kWord;
    if (in_.Peek() == '{') {
      form = ValueForm::kBlock;
      in_.Advance();
      value->position = in_.position();
      auto text = TakeBalanced(value->position, /*to_semicolon=*/false);
      if (!text.ok()) return text.status();
      value->text = *std::move(text);
      in_.Advance();
    } else if (in_.Peek() == '"') {
      form = ValueForm::kString;
      auto text = in_.TakeString(kMaxConfigTextBytes);
      if (!text.ok()) return text.status();
      value->text = *std::move(text);
    } else {
      const size_t begin = in_.offset();
      while (IsBareByte(in_.Peek())) in_.Advance();
      const std::string_view word = in_.Since(begin);
      if (word.empty()) {
        return in_.ErrorHere("expected the value of " + std::string(what) +
                             ", found " + Found());
      }
      if (word.size() > kMaxConfigTextBytes) {
        return ErrorAt(in_.file(), value->position,
                       "a value longer than " +
                           std::to_string(kMaxConfigTextBytes) + " bytes");
      }
      value->text = std::string(word);
    }
    if (Status s =
            CheckValue(row, form, what, in_.file(), owner, needed, value);
        !s.ok()) {
      return s;
    }
    if (row.word_with_text.empty() || value->text != row.word_with_text) {
      return Status::Ok();
    }
    return TakeArgument(value);
  }

  // The text behind the word of a choice: a string, or a bare word that cannot
  // be the name of an option.
  Status TakeArgument(ConfigValue* value) {
    in_.SkipSpace();
    if (in_.Peek() == '"') {
      auto text = in_.TakeString(kMaxConfigTextBytes);
      if (!text.ok()) return text.status();
      value->argument = *std::move(text);
    } else if (!IsNameStart(in_.Peek())) {
      const size_t begin = in_.offset();
      while (IsBareByte(in_.Peek())) in_.Advance();
      value->argument = in_.Since(begin).substr(0, kMaxConfigTextBytes);
    }
    if (!value->argument.empty()) return Status::Ok();
    return in_.ErrorHere("expected a text after " + Quoted(value->text) +
                         ", as \"/var/spool/tracefs\", found " + Found());
  }

  TextCursor in_;
  const ConfigSchema& schema_;
  SourcePosition open_;  // the '{' of the section being read
};

}  // namespace

const ConfigOption* ConfigEntry::Find(std::string_view option) const {
  for (const ConfigOption& o : options) {
    if (o.name == option) return &o;
  }
  return nullptr;
}

uint64_t ConfigEntry::Number(std::string_view option,
                             uint64_t otherwise) const {
  const ConfigOption* const found = Find(option);
  return found == nullptr ? otherwise : found->value.number;
}

std::chrono::nanoseconds ConfigEntry::Duration(
    std::string_view option, std::chrono::nanoseconds otherwise) const {
  return std::chrono::nanoseconds(
      Number(option, static_cast<uint64_t>(otherwise.count())));
}

std::string_view ConfigEntry::Text(std::string_view option,
                                   std::string_view otherwise) const {
  const ConfigOption* const found = Find(option);
  return found == nullptr ? otherwise : std::string_view(found->value.text);
}

Result<Config> ParseConfig(std::string_view text, std::string_view file_name,
                           const ConfigSchema& schema) {
  if (text.size() > kMaxConfigBytes) {
    return Status::Invalid(std::string(file_name) + ": longer than " +
                           std::to_string(kMaxConfigBytes) + " bytes");
  }
  return Parser(text, file_name, schema).Parse();
}

}  // namespace tracefs

#include "tracefs/export/ctf.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/base/append_le.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/base/version.h"

namespace tracefs {
namespace {

using format::Record;

constexpr uint32_t kCtfMagic = 0xc1fc1fc1;
constexpr size_t kPacketBytes = size_t{256} << 10;
constexpr size_t kMaxClasses = 60'000;  // their numbers have 16 bits
constexpr size_t kContextAt = 8;        // behind magic and stream_id
constexpr size_t kHeadBytes = kContextAt + 5 * 8 + 4;

// A string of the metadata: its escapes are C's.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : EscapedText(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// "uint64_t inode"
std::string Declaration(const Column& column) {
  const std::string name(column.name);
  switch (column.type) {
    case ColumnType::kWord:
    case ColumnType::kText:
      return "string " + name + ";";
    case ColumnType::kBytes:
      return "uint32_t " + name + "_length; uint8_t " + name + "[" + name +
             "_length];";
    case ColumnType::kFlag:
      return "uint8_t " + name + ";";
    case ColumnType::kSigned64:
    case ColumnType::kTime:
      return "int64_t " + name + ";";
    case ColumnType::kUnsigned32:
    case ColumnType::kUnsigned64:
      break;
  }
  const FieldType type = Info(column.field).type;
  const std::string base = column.source != ColumnSource::kField ? "uint"
                           : type == FieldType::kHex             ? "hex"
                           : type == FieldType::kOctal           ? "octal"
                                                                 : "uint";
  return base + (column.type == ColumnType::kUnsigned32 ? "32_t " : "64_t ") +
         name + ";";
}

class Stream {
 public:
  Stream(UniqueFd fd, uint32_t number)
      : fd_(std::move(fd)), out_(fd_.get()), number_(number) {}

  // An event's time in its stream never goes back.
  uint64_t NextTime(uint64_t ns) const { return std::max(ns, last_ns_); }

  void Put(uint64_t ns, uint16_t event_class, std::string_view fields,
           uint64_t discarded) {
    if (!begun_) {
      begun_ = true;
      first_ns_ = last_ns_ = ns;
      // What is lost before the first event is told by comparing with this.
      WritePacket(0);
    }
    if (events_.empty()) first_ns_ = ns;
    last_ns_ = ns;
    AppendLe(event_class, &events_);
    AppendLe(ns, &events_);
    events_ += fields;
    if (events_.size() >= kPacketBytes) WritePacket(discarded);
  }

  Status Finish(uint64_t discarded) {
    if (!begun_) WritePacket(0);
    if (!events_.empty() || discarded != discarded_) {
      if (events_.empty()) first_ns_ = last_ns_;
      WritePacket(discarded);
    }
    return out_.Flush();
  }
  const Status& status() const { return out_.status(); }

 private:
  void WritePacket(uint64_t discarded) {
    discarded_ = discarded;
    std::string head;
    AppendLe(kCtfMagic, &head);
    AppendLe<uint32_t>(0, &head);  // stream_id
    AppendLe(first_ns_, &head);
    AppendLe(last_ns_, &head);
    const uint64_t bits = 8 * (kHeadBytes + events_.size());
    AppendLe(bits, &head);
    AppendLe(bits, &head);
    AppendLe(discarded, &head);
    AppendLe(number_, &head);
    out_.Append(head);
    out_.Append(events_);
    events_.clear();
  }

  UniqueFd fd_;
  FdOutput out_;
  const uint32_t number_;
  bool begun_ = false;
  uint64_t first_ns_ = 0;
  uint64_t last_ns_ = 0;
  uint64_t discarded_ = 0;
  std::string events_;
};

class CtfExporter final : public Exporter {
 public:
  explicit CtfExporter(const ExportOptions& options) : folder_(options.path) {
    for (const Column& column : AllColumns()) {
      // The name of the event, its time, and what its stream has.
      if (column.source == ColumnSource::kOp ||
          column.source == ColumnSource::kTime ||
          column.source == ColumnSource::kHost) {
        continue;
      }
      columns_.push_back(&column);
    }
    static_assert(kFieldCount + 8 <= 128, "a class has a bit for each column");
  }

  void Write(const Record& record) override {
    if (!status_.ok()) return;
    Stream* const stream = StreamOf(record.trace);
    if (stream == nullptr) return;
    const TableRow row(record);
    fields_.clear();
    Class key{.op = record.event.op};
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Cell cell = row.Get(*columns_[i], &scratch_);
      if (!cell.present) continue;
      key.present[i / 64] |= uint64_t{1} << i % 64;
      Put(*columns_[i], cell, &fields_);
    }
    const uint64_t at = stream->NextTime(record.real_ns);
    // Told late, or without a time: then its own time is a field.
    key.late = at != record.real_ns;
    if (key.late) AppendLe(static_cast<int64_t>(record.real_ns), &fields_);
    const std::optional<uint16_t> number = NumberOf(key);
    if (!number) {
      ++left_out_;
      return;
    }
    stream->Put(at, *number, fields_, record.trace->stats.lost_events);
    if (!stream->status().ok()) status_ = stream->status();
  }

  void Summarize(const ExportSummary& summary) override {
    // A trace without an operation may have lost some.
    for (const format::TraceContext* trace : summary.traces) {
      if (!status_.ok() || StreamOf(trace) == nullptr) return;
    }
    filter_ = summary.filter;
  }

  void Finish() override {
    for (auto& [trace, stream] : streams_) {
      const Status s = stream.Finish(trace->stats.lost_events);
      if (!s.ok() && status_.ok()) status_ = s;
    }
    if (status_.ok()) WriteMetadata();
  }

  uint64_t left_out() const override { return left_out_; }
  Status status() const override { return status_; }

 private:
  // What decides which fields an event has.
  struct Class {
    Op op{};
    bool late = false;
    uint64_t present[2] = {0, 0};
    friend auto operator<=>(const Class&, const Class&) = default;
  };

  static void Put(const Column& column, const Cell& cell, std::string* out) {
    switch (column.type) {
      case ColumnType::kWord:
        *out += cell.text;
        *out += '\0';
        return;
      case ColumnType::kText:
        if (NeedsEscapes(cell.text)) {
          *out += EscapedText(cell.text);
        } else {
          *out += cell.text;
        }
        *out += '\0';
        return;
      case ColumnType::kBytes:
        AppendLe(static_cast<uint32_t>(cell.text.size()), out);
        *out += cell.text;
        return;
      case ColumnType::kFlag:
        *out += '\1';
        return;
      case ColumnType::kUnsigned32:
        AppendLe(static_cast<uint32_t>(cell.number), out);
        return;
      case ColumnType::kUnsigned64:
      case ColumnType::kSigned64:
      case ColumnType::kTime:
        AppendLe(cell.number, out);
        return;
    }
  }

  // The number of the event class; none once there are too many of them.
  std::optional<uint16_t> NumberOf(const Class& key) {
    const auto found = classes_.find(key);
    if (found != classes_.end()) return found->second;
    if (classes_.size() >= kMaxClasses) return std::nullopt;
    const auto number = static_cast<uint16_t>(classes_.size());
    classes_.emplace(key, number);
    return number;
  }

  UniqueFd Create(const std::string& name) {
    const std::string path = folder_ + '/' + name;
    UniqueFd fd(
        ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!fd) status_ = Status::System(errno, "cannot make " + path);
    return fd;
  }

  Stream* StreamOf(const format::TraceContext* trace) {
    const auto found = streams_.find(trace);
    if (found != streams_.end()) return &found->second;
    const auto number = static_cast<uint32_t>(streams_.size());
    UniqueFd fd = Create("stream_" + std::to_string(number));
    if (!fd) return nullptr;
    order_.push_back(trace);
    return &streams_.try_emplace(trace, std::move(fd), number).first->second;
  }

  void WriteMetadata() {
    UniqueFd fd = Create("metadata");
    if (!fd) return;
    FdOutput out(fd.get());
    out.Append(R"tsdl(/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
typealias integer { size = 32; align = 8; signed = false; base = 8; } := octal32_t;
typealias integer { size = 64; align = 8; signed = false; base = 8; } := octal64_t;
typealias integer { size = 32; align = 8; signed = false; base = 16; } := hex32_t;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := hex64_t;

trace {
	major = 1;
	minor = 8;
	byte_order = le;
	packet.header := struct { uint32_t magic; uint32_t stream_id; };
};

clock {
	name = realtime;
	description = "ns since 1970";
	freq = 1000000000;
	offset = 0;
	absolute = true;
};

typealias integer { size = 64; align = 8; signed = false; map = clock.realtime.value; } := time_t;

)tsdl");
    out.Append(
        "env {\n\tdomain = \"tracefs\";\n\ttracer_name = \"tracefs\";\n");
    out.Append("\tconverter = " + Quoted("tracefs " + std::string(kVersion)) +
               ";\n");
    for (const auto& [kind, count] : LeftOutSoFar().Kinds()) {
      out.Append("\tleft_out_" + std::string(kind) + " = " +
                 std::to_string(count) + ";\n");
    }
    if (!filter_.empty()) out.Append("\tfilter = " + Quoted(filter_) + ";\n");
    for (size_t i = 0; i < order_.size(); ++i) {
      const format::TraceHeader& header = order_[i]->description.header;
      const std::string name = "\ttrace_" + std::to_string(i) + "_";
      out.Append(name + "name = " + Quoted(order_[i]->name) + ";\n");
      out.Append(name + "tracer = " + std::to_string(header.tracer_id) + ";\n");
      for (const auto& [key, value] : header.properties) {
        std::string word;
        for (const char c : key) {
          const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                             (c >= 'A' && c <= 'Z');
          word += plain ? c : '_';
        }
        out.Append(name + word + " = " + Quoted(value) + ";\n");
      }
    }
    out.Append(R"tsdl(};

stream {
	id = 0;
	packet.context := struct {
		time_t timestamp_begin;
		time_t timestamp_end;
		uint64_t content_size;
		uint64_t packet_size;
		uint64_t events_discarded;
		uint32_t trace_number;
	};
	event.header := struct { uint16_t id; time_t timestamp; };
};
)tsdl");
    for (const auto& [key, number] : classes_) {
      out.Append("\nevent {\n\tid = " + std::to_string(number) +
                 ";\n\tname = \"" + std::string(OpName(key.op)) +
                 "\";\n\tstream_id = 0;\n\tfields := struct {\n");
      for (size_t i = 0; i < columns_.size(); ++i) {
        if ((key.present[i / 64] >> i % 64 & 1) == 0) continue;
        out.Append("\t\t" + Declaration(*columns_[i]) + "\n");
      }
      if (key.late) out.Append("\t\tint64_t time;\n");
      out.Append("\t};\n};\n");
    }
    status_ = out.Flush();
  }

  const std::string folder_;
  std::vector<const Column*> columns_;
  std::map<Class, uint16_t> classes_;
  std::unordered_map<const format::TraceContext*, Stream> streams_;
  std::vector<const format::TraceContext*> order_;
  std::string filter_;
  std::string fields_;
  std::string scratch_;
  uint64_t left_out_ = 0;
  Status status_;
};

}  // namespace

std::unique_ptr<Exporter> MakeCtfExporter(OutputBuffer&,
                                          const ExportOptions& options) {
  return std::make_unique<CtfExporter>(options);
}

}  // namespace tracefs

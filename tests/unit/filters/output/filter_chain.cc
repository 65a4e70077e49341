#include "tests/unit/filters/output/filter_chain.h"

#include <gtest/gtest.h>

namespace tracefs {

Result<TracerConfig> ParseOutput(const std::string& output) {
  static const std::vector<EntryRow> rows = [] {
    std::vector<EntryRow> all;
    for (const OutputFilterRow& row : OutputFilters()) all.push_back(row.entry);
    all.push_back({.name = "file",
                   .role = EntryRole::kDriver,
                   .value = {.type = ValueType::kText, .required = true}});
    return all;
  }();
  Result<Config> config = ParseConfig("{ {} {} { " + output + " } }", "t.conf",
                                      {.assembly = {}, .output = rows});
  if (!config.ok()) return config.status();
  return config->tracers[0];
}

Result<std::unique_ptr<OutputFilter>> MakeFilters(const TracerConfig& tracer,
                                                  ChainLog* log) {
  if (Status s = CheckChain("t.conf", tracer.output); !s.ok()) return s;
  std::unique_ptr<OutputFilter> chain = std::make_unique<ChainEnd>(log);
  for (size_t i = tracer.output.size() - 1; i-- > 0;) {
    const ConfigEntry& entry = tracer.output[i];
    auto made = FindOutputFilter(entry.name)->make(entry, std::move(chain), {});
    if (!made.ok()) return made.status();
    chain = *std::move(made);
  }
  return chain;
}

std::unique_ptr<OutputFilter> MustMakeFilters(const std::string& output,
                                              ChainLog* log) {
  const Result<TracerConfig> tracer = ParseOutput(output);
  if (!tracer.ok()) {
    ADD_FAILURE() << output << ": " << tracer.status().message();
    return nullptr;
  }
  auto filters = MakeFilters(*tracer, log);
  if (!filters.ok()) {
    ADD_FAILURE() << output << ": " << filters.status().message();
    return nullptr;
  }
  return *std::move(filters);
}

std::vector<Written> RunChain(const std::string& output,
                              const std::vector<std::string>& blocks,
                              const TraceIdentity& identity) {
  ChainLog log;
  const auto filters = MustMakeFilters(output, &log);
  if (filters == nullptr) return {};
  Status status = filters->Initialize(identity);
  for (size_t i = 0; status.ok() && i < blocks.size(); ++i) {
    status = filters->Write(AsBytes(blocks[i]),
                            {.sequence = i, .last = i + 1 == blocks.size()});
  }
  if (status.ok()) status = filters->Release();
  EXPECT_TRUE(status.ok()) << output << ": " << status.message();
  return log.written;
}

std::string ChainTextOf(const std::string& output) {
  const Result<TracerConfig> tracer = ParseOutput(output);
  return tracer.ok() ? ChainText(tracer->output) : tracer.status().message();
}

Result<std::string> DecodeWith(ChainDecoder& decoder, const Written& written,
                               const format::Serial& serial,
                               BlockNotes* notes) {
  BlockNotes local;
  ByteSpan block;
  if (Status s = decoder.Decode(
          {.serial = serial, .sequence = written.info.sequence},
          AsBytes(written.payload), notes == nullptr ? &local : notes, &block);
      !s.ok()) {
    return s;
  }
  return std::string(AsText(block));
}

Result<std::string> DecodeChain(const std::string& chain, const KeyRing& keys,
                                const Written& written,
                                const format::Serial& serial,
                                BlockNotes* notes) {
  Result<ChainDecoder> decoder = ChainDecoder::Create(chain, &keys);
  if (!decoder.ok()) return decoder.status();
  return DecodeWith(*decoder, written, serial, notes);
}

}  // namespace tracefs

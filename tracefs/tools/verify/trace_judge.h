// TraceJudge: judges the blocks of one trace. For each frame, in file order, it
// gets the findings of undoing the chain, and says for every block number
// whether it is ok, bad, missing or unsealed. THREATS.md in filters/output says
// what that proves.
//
// Numbers and claims are believed only where a tag or a signature covers them.
// Blocks are judged each by itself: a bad one takes no trust from the others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "filters/output/anchor.h"
#include "filters/output/key_ring.h"
#include "filters/output/stage_decoder.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs {

enum class Trust : uint8_t { kOk, kBad, kMissing, kUnsealed };
// "ok", "bad", "missing", "unsealed".
std::string_view TrustWord(Trust trust);

// Blocks first … last, or something about the trace that has no numbers.
struct JudgedRange {
  Trust trust = Trust::kOk;
  bool has_numbers = true;
  uint64_t first = 0;
  uint64_t last = 0;
  std::string why = {};  // empty for ok
  // Of the tracer, by its own account; nothing happened to the file.
  bool by_own_account = false;
};

struct JudgeOptions {
  const KeyRing* keys = nullptr;
  // A trace without its end is ok: it is still being written.
  bool unfinished = false;
  std::vector<Anchor> anchors;  // of any traces
  bool anchors_wanted = false;  // and a trace without any is suspicious
};

class TraceJudge {
 public:
  TraceJudge(JudgeOptions options, const format::Serial& serial);

  // Another file of the same trace follows, or the first.
  void BeginFile(ByteSpan preamble, bool preamble_damaged);
  // A frame at `offset`: what decoding it found, and whether the block has the
  // FINAL message (if it could be decoded to the end).
  // `crc`: of its header.
  void AddFrame(const BlockId& id, uint64_t offset, uint32_t crc,
                const Status& decoded, const BlockNotes& notes, bool has_final);
  // Bytes that are not a frame of this trace.
  void AddDamage(uint64_t offset, uint64_t bytes, bool cut);

  // Whether the last file ends where it does because it is being written.
  void SetWriterLives(bool lives) { writer_lives_ = lives; }

  // Everything was told. Findings are in the order of block numbers.
  std::vector<JudgedRange> Judge();

  // The checksum of the first block that was found authentic.
  const std::optional<ChecksumHead>& seal() const { return seal_; }

 private:
  // Blocks with numbers that follow each other, as they were found.
  struct Run {
    uint64_t first;
    uint64_t last;
    bool sealed;
    // The number of the block before its first one, by that one's word.
    uint64_t previous;
    bool has_previous;
    bool again;  // it starts below what was found before, up to `highest`
    uint64_t highest;
    bool in_place = false;
  };
  struct Damage {
    std::string why;
    bool named = false;
  };
  struct BadFrame {
    uint64_t number;
    uint64_t offset;
    std::string why;
  };

  // Why the block is bad though its tag is right; empty if it is not.
  std::string CheckClaims(uint64_t number, const ChecksumNote& note);
  // The damage that stands where block `number` should; null if there is none.
  Damage* DamageAt(uint64_t number);
  void AddBad(uint64_t number, uint64_t offset, std::string why);
  void AddToRuns(uint64_t number, bool sealed, const ChecksumNote* note);
  void PutInPlace();
  void FindMissing(std::vector<JudgedRange>* findings);
  void CheckEnd(std::vector<JudgedRange>* findings) const;
  void CheckAnchors(std::vector<JudgedRange>* findings) const;

  const JudgeOptions options_;
  const format::Serial serial_;
  std::multimap<uint64_t, const Anchor*> anchors_;  // of the trace, by block
  std::vector<Run> runs_;
  std::vector<BadFrame> bad_;
  std::vector<Damage> damage_;
  // By the number that may have been there: the first of them.
  std::map<uint64_t, size_t> damage_at_;
  std::vector<JudgedRange> other_;  // without numbers
  std::map<uint64_t, Digest> anchored_seen_;

  Digest preamble_link_{};
  bool preamble_known_ = false;
  bool file_begins_ = false;
  uint64_t next_number_ = 0;  // after the frame seen last
  // From block 0, which each part of a rotated trace repeats.
  std::optional<Digest> head_link_;
  std::optional<uint32_t> head_crc_;
  std::optional<ChecksumHead> seal_;
  // About the authentic block found last.
  bool any_ = false;
  uint64_t last_number_ = 0;
  Digest last_link_{};
  uint64_t last_monotonic_ns_ = 0;
  bool writer_lives_ = false;
  std::optional<uint64_t> end_;  // number of the block that ends the trace
};

}  // namespace tracefs

#include "tracefs/replay/check.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tracefs/base/printable.h"

namespace tracefs::replay {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostFilesShown = 100;  // in text; JSON has more

}  // namespace

std::vector<Finding> FindLacks(const Checked& checked) {
  const Lacks& l = checked.lacks;
  std::vector<Finding> findings;
  const auto find = [&](bool fatal, uint64_t count, const char* key,
                        std::string text) {
    if (count != 0) {
      findings.push_back({fatal, count, key, std::move(text), {}});
    }
  };
  if (l.operations == 0 && checked.from_trace) {
    findings.push_back({true, 0, "operations", "there are no operations", {}});
  }
  find(true, checked.header.lost, "lost",
       "operations were lost when it was recorded: what they did is missing");
  find(true, l.without_path, "without_file",
       "operations do not say on which file: record with STR_INODE and "
       "STR_PATH");
  find(true, l.without_handle, "without_handle",
       "operations do not say through which open file: record with STR_FILE");
  find(true, l.without_arguments, "without_arguments",
       "operations lack their arguments: record with STR_ARGS");
  find(false, l.without_time, "without_time",
       "operations have no time: order and --timing are not known; record with "
       "STR_TIMESTAMP");
  find(false, l.without_duration, "without_duration",
       "operations have no duration: which of them ran at once is not known; "
       "record with STR_DURATION");
  find(false, l.without_result, "without_result",
       "operations have no result to compare with: record with STR_RETVAL");
  find(false, l.without_thread, "without_thread",
       "operations do not say which thread: record with STR_TID");
  find(false, l.without_user, "without_user",
       "operations do not say which user: record with STR_UID");
  find(false, l.without_inode, "without_inode",
       "operations have no inode number: files are known by their paths only; "
       "record with STR_INODE and STR_DENTRY");
  find(false, l.writes_without_data, "writes_without_data",
       "writes without their bytes: others of the same length are written, and "
       "the replay differs in them; record with STR_DATA, or say with --data "
       "synth that bytes do not count");
  find(false, l.reads_without_hash, "reads_without_hash",
       "reads whose bytes cannot be compared: record with STR_DATA or "
       "STR_DATA_CKSUM");
  find(false, l.xattrs_without_value, "xattrs_without_value",
       "extended attributes whose values are not in the trace: others of the "
       "same "
       "length are set");
  find(true, checked.header.unknown_content, "files_without_content",
       "files that were there before, with contents that are not in the trace: "
       "they are made of zeros, unless DIR has them (--existing)");
  if (!findings.empty()) {
    Finding& last = findings.back();
    if (last.key == "files_without_content") last.files = checked.unknown_files;
  }
  find(false, l.entries_before - std::min(l.entries_before, l.entries_known),
       "entries_without_state",
       "files that were there before, of which extended attributes, link "
       "targets "
       "and holes are not kept: record with STR_REPLAY");
  find(false, l.states_late, "states_late",
       "files that were changed while their state was being read");
  find(false, l.states_incomplete, "states_incomplete",
       "files whose state could not be read whole");
  if (l.final_states == 0 && checked.from_trace && l.operations != 0) {
    findings.push_back({false,
                        0,
                        "without_end",
                        "nothing tells what the tree was in the end: it is "
                        "worked out; record with STR_REPLAY",
                        {}});
  }
  find(false, l.entries_without_attributes, "entries_without_attributes",
       "files that were there before, with attributes that nobody asked for");
  find(false, l.handles_before, "handles_before",
       "files that were open before recording began: they are opened when "
       "first used");
  find(false, l.not_replayed, "not_replayed",
       "ioctl, poll and getlk: not done");
  find(true, l.unplaced_changes, "unplaced_changes",
       "changes of files that nobody can name, or of which the trace "
       "contradicts itself: not done");
  find(true, l.unseen_changes, "unseen_changes",
       "names that came to mean another file, and no operation says how");
  find(false, l.unplaced - l.unplaced_changes, "unplaced",
       "operations on files that nobody can name: not done");
  return findings;
}

std::vector<Finding> FindPrivileges(const Checked& checked) {
  std::vector<Finding> findings;
  for (size_t i = 0; i < kPrivilegeCount; ++i) {
    const uint64_t count = checked.lacks.privileges[i];
    const PrivilegeInfo& info = Info(static_cast<Privilege>(i));
    if (count == 0) continue;
    findings.push_back({false,
                        count,
                        std::string(info.key),
                        "times " + std::string(info.text) +
                            ": left out without " + std::string(info.option) +
                            ", and then the tree differs in them",
                        {}});
  }
  return findings;
}

bool IsReplayable(const Checked& checked,
                  const std::vector<Finding>& findings) {
  return !checked.damaged &&
         std::none_of(findings.begin(), findings.end(),
                      [](const Finding& f) { return f.fatal; });
}

std::string LacksText(const Checked& checked,
                      const std::vector<Finding>& findings, bool json) {
  const bool fatal = !IsReplayable(checked, findings);
  const PlanHeader& h = checked.header;
  if (json) {
    Json lacks = Json::array();
    for (const Finding& f : findings) {
      lacks.push_back({{"what", f.key},
                       {"count", f.count},
                       {"prevents", f.fatal},
                       {"text", f.text}});
      if (f.files.empty()) continue;
      Json files = Json::array();
      for (const std::string& file : f.files) files.push_back(Printable(file));
      lacks.back()["files"] = std::move(files);
    }
    Json left_out = Json::object();
    for (const Finding& f : FindPrivileges(checked)) left_out[f.key] = f.count;
    const Json all = {{"replayable", !fatal},
                      {"damaged", checked.damaged},
                      {"operations", h.operations},
                      {"threads", h.lanes},
                      {"initial_entries", h.initial_entries},
                      {"initial_bytes", h.initial_bytes},
                      {"written_bytes", h.written_bytes},
                      {"made_entries", h.made_entries},
                      {"visibility", checked.visibility},
                      {"left_out_unasked", left_out},
                      {"lacks", lacks}};
    return all.dump(2) + "\n";
  }
  std::string text = fatal ? "not replayable as it was\n" : "replayable\n";
  text += std::to_string(h.operations) + " operations of " +
          std::to_string(h.lanes) + " threads, on " +
          std::to_string(h.initial_entries) + " files that were there (" +
          std::to_string(h.initial_bytes) + " bytes) and " +
          std::to_string(h.made_entries) + " new ones; " +
          std::to_string(h.written_bytes) + " bytes are written\n";
  if (checked.damaged) {
    text +=
        "damaged, cut, or something is lost: tracefs-dump --stats tells "
        "more\n";
  }
  for (const Finding& f : findings) {
    text += (f.fatal ? "! " : "  ") +
            (f.count != 0 ? std::to_string(f.count) + " " : std::string()) +
            f.text + "\n";
    for (size_t i = 0; i < std::min(f.files.size(), kMostFilesShown); ++i) {
      text += "      " + Printable(f.files[i]) + "\n";
    }
    if (f.count > kMostFilesShown && f.files.size() > kMostFilesShown) {
      text += "      ... and " + std::to_string(f.count - kMostFilesShown) +
              " more\n";
    }
  }
  for (const Finding& f : FindPrivileges(checked)) {
    text += "  " + std::to_string(f.count) + " " + f.text + "\n";
  }
  return text;
}

}  // namespace tracefs::replay

// What each argument of a trace is to the anonymiser: its class, by which a
// policy names it together with its like; its identity domain, whose key it is
// encrypted with; and the shape of its value. The one table behind policies,
// --explain and the rewriter.
#ifndef ANONYMIZE_FIELDS_H_
#define ANONYMIZE_FIELDS_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace tracefs::anonymize {

// What a text consists of.
enum class Shape : uint8_t {
  kNumber,     // constant width
  kPath,       // components between '/'
  kComponent,  // one name
  kExtension,  // the extension of a name
  kWord,       // text without inner structure
  kXattr,      // namespace '.' name
  kBytes,      // anything
  kProperty,   // key '=' value: the rule is that of the key
  kStructure,  // holds the trace together; can only be kept
};

struct ClassInfo {
  std::string_view name;    // in policies
  std::string_view domain;  // values of one domain share a key, and tokens
  std::string_view help;
};
std::span<const ClassInfo> Classes();
const ClassInfo* FindClass(std::string_view name);

struct FieldClass {
  uint16_t arg_id;
  std::string_view class_name;
  Shape shape;
  // Of times: units in a second; 0 = no time. A shift is a whole number of
  // seconds, so that coarse and fine times of one trace stay together.
  uint64_t per_second;
};
// Null for arguments that this version does not know.
const FieldClass* FindField(uint16_t arg_id);

inline constexpr std::string_view kStructureClass = "structure";
inline constexpr std::string_view kPropertyDomain = "host";

}  // namespace tracefs::anonymize

#endif  // ANONYMIZE_FIELDS_H_

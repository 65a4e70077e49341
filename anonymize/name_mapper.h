// TextMapper: what becomes of the texts of one slot of a plan: names, component
// by component; words, names of attributes, bytes (POLICY.md, "Names").
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "anonymize/cbc.h"
#include "anonymize/map_table.h"
#include "anonymize/number_mapper.h"
#include "anonymize/plan.h"
#include "anonymize/siv.h"

namespace tracefs::anonymize {

// The key of a directory (`tree`); null where it is not known.
using DirectoryKey = std::shared_ptr<const SecretKey>;

// What belongs to the message a text is in.
struct TextContext {
  RandomPlace* random = nullptr;
  // Sealed names: made when hiding, looked up, and emptied, when revealing.
  std::vector<std::string>* sealed = nullptr;
  // With `tree`: of the directory that a component is in; for paths, of the
  // root.
  DirectoryKey directory;
};

// Used by one thread.
class TextMapper {
 public:
  // `slot` and `maps` outlive the mapper. cache_entries: names remembered, 0 =
  // none; the results are the same.
  static Result<TextMapper> Create(const TextSlot* slot, size_t cache_entries,
                                   MapTables* maps);

  // Appends what becomes of `value`.
  Status Map(std::string_view value, const TextContext& context,
             std::string* out);

  // The value is one of those that stay as they are.
  bool Keeps(std::string_view value) const;

  // --- Directories with keys of their own.
  // The key of the root of the mount; null if only subtrees are known.
  const DirectoryKey& root() const { return root_; }
  // What stands for it where symlink targets are concerned: they may lead
  // anywhere, so their names have keys apart from those of files.
  const DirectoryKey& symlink_root() const { return symlink_root_; }
  // The key of the directory that appears under this path, if it was given.
  DirectoryKey Subtree(std::string_view anonymised_path) const;
  // The key of a directory by its name in clear; null without a parent.
  DirectoryKey Child(const DirectoryKey& parent, std::string_view name) const;

  // What was neither a token nor could be one, while revealing: values that
  // the policy had kept.
  uint64_t left_as_they_are() const { return left_; }

 private:
  enum class Part : uint8_t { kStem, kExtension };
  struct Cached {
    std::string text;
    std::string sealed;  // "" = none
  };
  explicit TextMapper(const TextSlot* slot) : slot_(slot) {}

  Status MapPath(std::string_view path, const TextContext& context,
                 std::string* out);
  Status MapComponent(std::string_view name, const TextContext& context,
                      std::string* out);
  Status HideComponent(std::string_view name, const TextContext& context,
                       Cached* result);
  Status RevealComponent(std::string_view name, const TextContext& context,
                         std::string* out);
  Status MapExtension(std::string_view extension, const TextContext& context,
                      std::string* out);
  Status MapXattr(std::string_view name, const TextContext& context,
                  std::string* out);
  Status MapBytes(std::string_view value, const TextContext& context,
                  std::string* out);
  Status MapPaper(std::string_view value, std::string* out);

  // Appends the token of a part of a name.
  Status AppendToken(Part part, std::string_view plain,
                     const TextContext& context, std::string* out);
  // Appends what a token stands for; false if it is none.
  bool OpenToken(Part part, std::string_view token, const TextContext& context,
                 std::string* out);
  // With AES-SIV: tag and ciphertext of the value in its envelope, and back.
  Status Seal(Siv& siv, std::string_view plain, std::string* out);
  bool Open(Siv& siv, ByteSpan sealed, std::string* out);
  // The cipher for a part: of the slot, or of a directory.
  Result<Siv*> CipherOf(Part part, const TextContext& context);

  const TextSlot* slot_;
  MapTables* maps_ = nullptr;
  std::optional<Siv> stem_siv_;
  std::optional<Siv> extension_siv_;
  std::optional<Cbc> cbc_;
  std::optional<Mac> mac_;
  SecretKey stem_key_;  // of hmac and random
  SecretKey extension_key_;
  DirectoryKey root_;
  DirectoryKey symlink_root_;
  // Hashes what has keys in it.
  struct SecretHash {
    size_t operator()(const SecretString& text) const {
      return std::hash<std::string_view>()({text.data(), text.size()});
    }
  };
  // Ciphers of directories, by key; emptied when it is full.
  std::unordered_map<SecretString, std::unique_ptr<Siv>, SecretHash>
      directory_sivs_;
  size_t cache_entries_ = 0;
  // By the key of the directory, where there is one, and the name.
  std::unordered_map<SecretString, Cached, SecretHash> cache_;
  SecretString cache_key_;
  std::vector<std::byte> scratch_;
  uint64_t left_ = 0;
};

}  // namespace tracefs::anonymize

#include "anonymize/name_mapper.h"

#include <algorithm>

#include "anonymize/base64url.h"
#include "anonymize/name_parts.h"

namespace tracefs::anonymize {
namespace {

constexpr size_t kMaxNameBytes = 255;
// What a value looks like before it is encrypted: as it is or, where it is
// empty (OpenSSL's AES-SIV cannot encrypt nothing) or begins like an envelope,
// behind the first of these; padded, behind the second.
constexpr char kPlainEnvelope = 1;
constexpr char kPaddedEnvelope = 2;
constexpr char kPadding = '\x80';  // then zeros
// Between a token and digits in clear; neither is in a token's alphabet. The
// first also begins the token of a sealed name.
constexpr char kBeforeDigits = '+';
constexpr char kSealedMark = '+';

constexpr size_t kHmacTokenBytes = 16;
// The token of the shortest value: tag and a byte.
constexpr size_t kMinTokenChars = Base64urlSize(Siv::kTagBytes + 1);
constexpr size_t kSealedTokenChars = 1 + Base64urlSize(Siv::kTagBytes);

// Directory ciphers and names that are kept ready at most.
constexpr size_t kMaxDirectories = 4096;

// The namespaces of attribute names that the kernel knows (linux/xattr.h). What
// else stands before a dot is somebody's word.
constexpr std::string_view kXattrNamespaces[] = {
    "btrfs.", "hurd.",     "os2.",    "osx.",
    "user.",  "security.", "system.", "trusted."};

size_t NamespaceBytes(std::string_view name) {
  for (const std::string_view known : kXattrNamespaces) {
    if (name.starts_with(known)) return known.size();
  }
  return 0;
}

size_t TokenRun(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsBase64url(text[n])) ++n;
  return n;
}

}  // namespace

Result<TextMapper> TextMapper::Create(const TextSlot* slot,
                                      size_t cache_entries, MapTables* maps) {
  TextMapper mapper(slot);
  mapper.maps_ = maps;
  mapper.cache_entries_ = slot->action == Action::kRandom ? 0 : cache_entries;
  const auto make_siv = [&](std::string_view purpose, std::optional<Siv>* siv) {
    SecretMemory key(Siv::kKeyBytes);
    DeriveInto(slot->key.get(), purpose, key.bytes());
    Result<Siv> made = Siv::Create(key.bytes());
    if (!made.ok()) return made.status();
    *siv = *std::move(made);
    return Status::Ok();
  };
  switch (slot->action) {
    case Action::kEncrypt:
      if (slot->subtrees.empty()) {
        if (Status s = make_siv("siv", &mapper.stem_siv_); !s.ok()) return s;
        if (Status s = make_siv("siv-extension", &mapper.extension_siv_);
            !s.ok()) {
          return s;
        }
        if (slot->rule.tree) {
          mapper.root_ =
              std::make_shared<SecretKey>(TreeRootKey(slot->key.get()));
          mapper.symlink_root_ = std::make_shared<SecretKey>(
              DeriveKey(slot->key.get(), "tree of symlink targets"));
        }
      } else {
        mapper.root_ = mapper.Subtree("/");
      }
      break;
    case Action::kPaper: {
      SecretMemory key(Cbc::kKeyBytes);
      DeriveInto(slot->key.get(), "cbc", key.bytes());
      Result<Cbc> cbc = Cbc::Create(key.bytes());
      if (!cbc.ok()) return cbc.status();
      mapper.cbc_ = *std::move(cbc);
      break;
    }
    case Action::kHmac:
    case Action::kRandom:
      mapper.mac_ = MakeHmacSha256();
      mapper.stem_key_ = DeriveKey(slot->key.get(), ActionName(slot->action));
      mapper.extension_key_ =
          DeriveKey(slot->key.get(),
                    std::string(ActionName(slot->action)) + "-extension");
      break;
    default:
      break;
  }
  return mapper;
}

DirectoryKey TextMapper::Child(const DirectoryKey& parent,
                               std::string_view name) const {
  if (parent == nullptr) return nullptr;
  return std::make_shared<SecretKey>(TreeChildKey(parent->get(), name));
}

DirectoryKey TextMapper::Subtree(std::string_view anonymised_path) const {
  for (const DerivedKey* key : slot_->subtrees) {
    if (key->subtree == anonymised_path) {
      return std::make_shared<SecretKey>(key->key.get());
    }
  }
  return nullptr;
}

bool TextMapper::Keeps(std::string_view value) const {
  const auto& keep = slot_->rule.keep;
  return !keep.empty() && std::binary_search(keep.begin(), keep.end(), value);
}

Status TextMapper::Map(std::string_view value, const TextContext& context,
                       std::string* out) {
  if (slot_->action == Action::kPaper) return MapPaper(value, out);
  if (slot_->action == Action::kZero) {
    if (slot_->shape == Shape::kBytes) out->append(value.size(), '\0');
    return Status::Ok();
  }
  switch (slot_->shape) {
    case Shape::kPath:
      return MapPath(value, context, out);
    case Shape::kComponent:
    case Shape::kWord:
      return MapComponent(value, context, out);
    case Shape::kExtension:
      return MapExtension(value, context, out);
    case Shape::kXattr:
      return MapXattr(value, context, out);
    default:
      return MapBytes(value, context, out);
  }
}

Status TextMapper::MapPath(std::string_view path, const TextContext& context,
                           std::string* out) {
  TextContext here = context;
  std::string shown = "/";  // of the anonymised path, for subtrees
  for (;;) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    const size_t start = out->size();
    if (Status s = MapComponent(name, here, out); !s.ok()) return s;
    if (end == path.size()) return Status::Ok();
    if (slot_->rule.tree && !IsSpecialName(name)) {
      const std::string_view clear =
          slot_->reveal ? std::string_view(*out).substr(start) : name;
      here.directory = Child(here.directory, clear);
      if (!slot_->subtrees.empty()) {
        if (shown.size() > 1) shown += '/';
        shown += name;
        if (here.directory == nullptr) here.directory = Subtree(shown);
      }
    }
    *out += '/';
    path.remove_prefix(end + 1);
  }
}

Status TextMapper::MapComponent(std::string_view name,
                                const TextContext& context, std::string* out) {
  if (IsSpecialName(name) || (!slot_->reveal && Keeps(name))) {
    *out += name;
    return Status::Ok();
  }
  if (slot_->reveal) return RevealComponent(name, context, out);
  Cached* found = nullptr;
  Cached result;
  if (cache_entries_ != 0) {
    cache_key_.clear();
    if (slot_->rule.tree && context.directory != nullptr) {
      cache_key_ = AsText(context.directory->get());
    }
    cache_key_ += name;
    if (cache_.size() >= cache_entries_) cache_.clear();
    const auto [at, added] = cache_.try_emplace(cache_key_);
    found = &at->second;
    if (added) {
      if (Status s = HideComponent(name, context, found); !s.ok()) {
        cache_.erase(at);
        return s;
      }
    }
  } else {
    found = &result;
    if (Status s = HideComponent(name, context, found); !s.ok()) return s;
  }
  *out += found->text;
  if (!found->sealed.empty()) context.sealed->push_back(found->sealed);
  return Status::Ok();
}

Status TextMapper::HideComponent(std::string_view name,
                                 const TextContext& context, Cached* result) {
  std::string& out = result->text;
  const bool whole = slot_->shape == Shape::kWord;
  const NameParts parts =
      whole ? NameParts{.stem = name} : SplitName(name, slot_->rule);
  out = parts.dots;
  if (Status s = AppendToken(Part::kStem, parts.stem, context, &out); !s.ok()) {
    return s;
  }
  if (!parts.digits.empty()) {
    out += kBeforeDigits;
    out += parts.digits;
  }
  if (parts.has_extension) {
    out += '.';
    if (ShowsExtension(slot_->rule, parts.extension)) {
      out += parts.extension;
    } else if (Status s = AppendToken(Part::kExtension, parts.extension,
                                      context, &out);
               !s.ok()) {
      return s;
    }
  }
  out += parts.mark;
  if (out.size() <= kMaxNameBytes) return Status::Ok();
  // Too long for a name. A hash of the whole is enough where nobody reverses
  // it; else the whole travels beside the name.
  out.clear();
  if (slot_->action != Action::kEncrypt) {
    return AppendToken(Part::kStem, name, context, &out);
  }
  const Result<Siv*> siv = CipherOf(Part::kStem, context);
  if (!siv.ok()) return siv.status();
  if (Status s = Seal(**siv, name, &result->sealed); !s.ok()) return s;
  out = kSealedMark;
  AppendBase64url(
      AsBytes(std::string_view(result->sealed).substr(0, Siv::kTagBytes)),
      &out);
  return Status::Ok();
}

Status TextMapper::RevealComponent(std::string_view name,
                                   const TextContext& context,
                                   std::string* out) {
  if (name.size() == kSealedTokenChars && name[0] == kSealedMark) {
    std::vector<std::byte> tag;
    const Result<Siv*> siv = CipherOf(Part::kStem, context);
    if (siv.ok() && FromBase64url(name.substr(1), &tag)) {
      for (std::string& sealed : *context.sealed) {
        if (sealed.starts_with(AsText(tag)) &&
            Open(**siv, AsBytes(sealed), out)) {
          sealed.clear();
          return Status::Ok();
        }
      }
    }
  }
  const size_t dots = std::min(name.find_first_not_of('.'), name.size());
  std::string_view rest = name.substr(dots);
  const size_t run = TokenRun(rest);
  const size_t start = out->size();
  *out += name.substr(0, dots);
  if (!OpenToken(Part::kStem, rest.substr(0, run), context, out)) {
    out->resize(start);
    *out += name;
    ++left_;
    return Status::Ok();
  }
  rest.remove_prefix(run);
  if (!rest.empty() && rest[0] == kBeforeDigits) rest.remove_prefix(1);
  const size_t dot = rest.find('.');
  if (dot != rest.npos) {
    *out += rest.substr(0, dot + 1);
    rest.remove_prefix(dot + 1);
    const size_t length = TokenRun(rest);
    if (OpenToken(Part::kExtension, rest.substr(0, length), context, out)) {
      rest.remove_prefix(length);
    }
  }
  *out += rest;
  return Status::Ok();
}

Status TextMapper::MapExtension(std::string_view extension,
                                const TextContext& context, std::string* out) {
  // With `tree` the directory is not known: extensions by themselves have the
  // domain's key.
  const TextContext flat = {
      .random = context.random, .sealed = context.sealed, .directory = nullptr};
  if (extension.empty()) return Status::Ok();
  if (!slot_->reveal) {
    if (ShowsExtension(slot_->rule, extension) || Keeps(extension)) {
      *out += extension;
      return Status::Ok();
    }
    return AppendToken(Part::kExtension, extension, flat, out);
  }
  if (!OpenToken(Part::kExtension, extension, flat, out)) {
    *out += extension;
    ++left_;
  }
  return Status::Ok();
}

Status TextMapper::MapXattr(std::string_view name, const TextContext& context,
                            std::string* out) {
  // A token has no dot, so that a dot ends what was kept.
  size_t kept = 0;
  if (slot_->reveal) {
    // Whatever was kept by whichever version.
    const size_t dot = name.find('.');
    kept = dot == name.npos ? 0 : dot + 1;
  } else if (Keeps(name)) {
    kept = name.size();
  } else if (slot_->rule.keep_namespace) {
    kept = NamespaceBytes(name);
  }
  if (kept == name.size()) {
    *out += name;
    return Status::Ok();
  }
  const size_t start = out->size();
  *out += name.substr(0, kept);
  const std::string_view rest = name.substr(kept);
  if (slot_->reveal) {
    if (kept == 0) return RevealComponent(name, context, out);
    if (!OpenToken(Part::kStem, rest, context, out)) {
      *out += rest;
      ++left_;
    }
    return Status::Ok();
  }
  if (Status s = AppendToken(Part::kStem, rest, context, out); !s.ok()) {
    return s;
  }
  if (out->size() - start <= kMaxNameBytes) return Status::Ok();
  out->resize(start);
  Cached whole;
  if (slot_->action != Action::kEncrypt) {
    return AppendToken(Part::kStem, name, context, out);
  }
  if (Status s = Seal(*stem_siv_, name, &whole.sealed); !s.ok()) return s;
  *out += kSealedMark;
  AppendBase64url(
      AsBytes(std::string_view(whole.sealed).substr(0, Siv::kTagBytes)), out);
  context.sealed->push_back(std::move(whole.sealed));
  return Status::Ok();
}

Status TextMapper::MapBytes(std::string_view value, const TextContext& context,
                            std::string* out) {
  if (!slot_->reveal && Keeps(value)) {
    *out += value;
    return Status::Ok();
  }
  switch (slot_->action) {
    case Action::kEncrypt:
      if (!slot_->reveal) return Seal(*stem_siv_, value, out);
      if (!Open(*stem_siv_, AsBytes(value), out)) {
        *out += value;
        ++left_;
      }
      return Status::Ok();
    case Action::kHmac: {
      std::byte digest[Mac::kMaxBytes];
      mac_->Start(stem_key_.get());
      mac_->Update(AsBytes(value));
      mac_->Finish(digest);
      *out += AsText({digest, mac_->size()});
      return Status::Ok();
    }
    default: {
      const auto random = NextRandom(*mac_, stem_key_.get(), context.random);
      *out += AsText(random);
      return Status::Ok();
    }
  }
}

Status TextMapper::MapPaper(std::string_view value, std::string* out) {
  if (!slot_->reveal) return cbc_->Seal(value, out);
  if (!cbc_->Open(value, out)) {
    *out += value;
    ++left_;
  }
  return Status::Ok();
}

Status TextMapper::AppendToken(Part part, std::string_view plain,
                               const TextContext& context, std::string* out) {
  switch (slot_->action) {
    case Action::kEncrypt: {
      const Result<Siv*> siv = CipherOf(part, context);
      if (!siv.ok()) return siv.status();
      std::string sealed;
      if (Status s = Seal(**siv, plain, &sealed); !s.ok()) return s;
      AppendBase64url(AsBytes(sealed), out);
      return Status::Ok();
    }
    case Action::kHmac: {
      std::byte digest[Mac::kMaxBytes];
      mac_->Start(part == Part::kStem ? stem_key_.get() : extension_key_.get());
      mac_->Update(AsBytes(plain));
      mac_->Finish(digest);
      AppendBase64url({digest, kHmacTokenBytes}, out);
      return Status::Ok();
    }
    case Action::kRandom:
      AppendBase64url(NextRandom(*mac_, stem_key_.get(), context.random), out);
      return Status::Ok();
    default: {  // kMap
      const Result<uint64_t> number = maps_->NumberOf(
          slot_->domain + (part == Part::kStem ? "" : "/extension"), plain);
      if (!number.ok()) return number.status();
      *out += (part == Part::kStem ? 'n' : 'x') + std::to_string(*number);
      return Status::Ok();
    }
  }
}

bool TextMapper::OpenToken(Part part, std::string_view token,
                           const TextContext& context, std::string* out) {
  if (token.size() < kMinTokenChars) return false;
  std::vector<std::byte> sealed;
  if (!FromBase64url(token, &sealed)) return false;
  const Result<Siv*> siv = CipherOf(part, context);
  return siv.ok() && Open(**siv, sealed, out);
}

Status TextMapper::Seal(Siv& siv, std::string_view plain, std::string* out) {
  scratch_.clear();
  const size_t pad = slot_->rule.pad;
  if (pad != 0) {
    scratch_.push_back(std::byte(kPaddedEnvelope));
  } else if (plain.empty() || plain[0] == kPlainEnvelope ||
             plain[0] == kPaddedEnvelope) {
    scratch_.push_back(std::byte(kPlainEnvelope));
  }
  const ByteSpan bytes = AsBytes(plain);
  scratch_.insert(scratch_.end(), bytes.begin(), bytes.end());
  if (pad != 0) {
    scratch_.push_back(std::byte(kPadding));
    scratch_.resize((scratch_.size() - 1 + pad - 1) / pad * pad + 1);
  }
  const size_t start = out->size();
  out->resize(start + Siv::kTagBytes + scratch_.size());
  return siv.Seal(scratch_, reinterpret_cast<std::byte*>(out->data() + start));
}

bool TextMapper::Open(Siv& siv, ByteSpan sealed, std::string* out) {
  if (sealed.size() <= Siv::kTagBytes) return false;
  scratch_.resize(sealed.size() - Siv::kTagBytes);
  if (!siv.Open(sealed, scratch_.data())) return false;
  std::string_view plain = AsText(scratch_);
  const char envelope = plain[0];
  if (envelope == kPlainEnvelope || envelope == kPaddedEnvelope) {
    plain.remove_prefix(1);
  }
  if (envelope == kPaddedEnvelope) {
    const size_t end = plain.rfind(kPadding);
    plain = plain.substr(0, end == plain.npos ? 0 : end);
  }
  *out += plain;
  return true;
}

Result<Siv*> TextMapper::CipherOf(Part part, const TextContext& context) {
  if (context.directory == nullptr) {
    auto& flat = part == Part::kStem ? stem_siv_ : extension_siv_;
    // With the keys of subtrees alone the rest stays closed.
    if (!flat) return Status::Invalid("no key for this directory");
    return &*flat;
  }
  SecretString id(AsText(context.directory->get()));
  id += part == Part::kStem ? 's' : 'e';
  const auto found = directory_sivs_.find(id);
  if (found != directory_sivs_.end()) return found->second.get();
  if (directory_sivs_.size() >= kMaxDirectories) directory_sivs_.clear();
  SecretMemory key(Siv::kKeyBytes);
  DeriveInto(context.directory->get(),
             part == Part::kStem ? "siv" : "siv-extension", key.bytes());
  Result<Siv> siv = Siv::Create(key.bytes());
  if (!siv.ok()) return siv.status();
  auto owned = std::make_unique<Siv>(*std::move(siv));
  Siv* const made = owned.get();
  directory_sivs_.emplace(std::move(id), std::move(owned));
  return made;
}

}  // namespace tracefs::anonymize

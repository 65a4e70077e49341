// Texts one by one: how long what stands for them is, and that they come back.
#include "anonymize/name_mapper.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "anonymize/base64url.h"
#include "tracefs/base/bytes.h"

namespace tracefs::anonymize {
namespace {

constexpr size_t kTag = 16;  // of AES-SIV

class TextMapperTest : public testing::Test {
 protected:
  TextMapperTest() { context_.sealed = &sealed_; }

  void Prepare(Shape shape, const Rule& rule) {
    for (TextSlot* slot : {&hides_, &reveals_}) {
      slot->action = Action::kEncrypt;
      slot->shape = shape;
      slot->domain = "name";
      slot->rule = rule;
      slot->key.get()[0] = std::byte{7};
    }
    reveals_.reveal = true;
  }
  std::string Mapped(const TextSlot& slot, std::string_view value,
                     const DirectoryKey& directory = nullptr) {
    Result<TextMapper> mapper = TextMapper::Create(&slot, 0, &maps_);
    EXPECT_TRUE(mapper.ok());
    context_.directory = directory;
    std::string out;
    EXPECT_TRUE(mapper->Map(value, context_, &out).ok());
    return out;
  }

  TextSlot hides_;
  TextSlot reveals_;
  MapTables maps_;
  std::vector<std::string> sealed_;
  TextContext context_;
};

// What would be taken for something else: envelopes, padding, zeros.
std::vector<std::string> Values() {
  std::vector<std::string> values = {
      std::string("\1", 1),       std::string("\2", 1),
      std::string("\2\x80", 2),   std::string("x\x80", 2),
      std::string("\x80\0\0", 3), std::string("x\0\0", 3)};
  for (size_t size = 0; size <= 70; ++size) {
    values.emplace_back(size, 'a');
    values.emplace_back(size, '\x80');
  }
  return values;
}

TEST_F(TextMapperTest, WhatIsPaddedTellsItsLengthInStepsOnly) {
  for (const uint32_t pad : {1u, 2u, 16u, 64u}) {
    Rule rule;
    rule.pad = pad;
    Prepare(Shape::kBytes, rule);
    for (const std::string& value : Values()) {
      const std::string hidden = Mapped(hides_, value);
      // The value and what ends it, in whole steps, in an envelope.
      const size_t steps = (value.size() + 1 + pad - 1) / pad;
      EXPECT_EQ(hidden.size(), kTag + 1 + steps * pad) << value.size();
      EXPECT_EQ(Mapped(reveals_, hidden), value);
    }
  }
}

TEST_F(TextMapperTest, WithoutPaddingOnlyAnEnvelopeIsAdded) {
  Prepare(Shape::kBytes, {});
  for (const std::string& value : Values()) {
    const std::string hidden = Mapped(hides_, value);
    const bool wraps = value.empty() || value[0] == 1 || value[0] == 2;
    EXPECT_EQ(hidden.size(), kTag + value.size() + (wraps ? 1 : 0));
    EXPECT_EQ(Mapped(reveals_, hidden), value);
  }
}

TEST_F(TextMapperTest, TokensOfPaddedWordsAreAsLong) {
  Rule rule;
  rule.pad = 8;
  Prepare(Shape::kWord, rule);
  for (size_t size = 1; size <= 40; ++size) {
    const std::string value(size, 'w');
    const std::string token = Mapped(hides_, value);
    std::vector<std::byte> sealed;
    ASSERT_TRUE(FromBase64url(token, &sealed)) << token;
    EXPECT_EQ(sealed.size(), kTag + 1 + (size + 8) / 8 * 8);
    EXPECT_EQ(Mapped(reveals_, token), value);
  }
}

TEST_F(TextMapperTest, AKeyOfADeepFolderOpensPathsBelowItAlone) {
  Rule rule;
  rule.tree = true;
  Prepare(Shape::kPath, rule);
  Result<TextMapper> all = TextMapper::Create(&hides_, 0, &maps_);
  ASSERT_TRUE(all.ok());
  const std::string path = "home/alice/tax/2025/a.pdf";
  const std::string hidden = Mapped(hides_, path, all->root());
  ASSERT_EQ(Mapped(reveals_, hidden, all->root()), path);

  std::vector<std::string> parts;
  for (size_t at = 0; at <= hidden.size();) {
    const size_t end = std::min(hidden.find('/', at), hidden.size());
    parts.push_back(hidden.substr(at, end - at));
    at = end + 1;
  }
  ASSERT_EQ(parts.size(), 5u);
  const std::vector<std::string> clear = {"home", "alice", "tax", "2025",
                                          "a.pdf"};
  DirectoryKey directory = all->root();
  std::string shown;
  for (size_t depth = 0; depth < 4; ++depth) {
    directory = all->Child(directory, clear[depth]);
    shown += '/' + parts[depth];
    DerivedKey key;
    key.domain = "name";
    key.subtree = shown;
    key.key = SecretKey(directory->get());
    reveals_.subtrees = {&key};
    std::string want;
    for (size_t i = 0; i < 5; ++i) {
      want += (i == 0 ? "" : "/") + (i <= depth ? parts[i] : clear[i]);
    }
    EXPECT_EQ(Mapped(reveals_, hidden), want) << depth;
  }
}

}  // namespace
}  // namespace tracefs::anonymize

// What is said of a broker: as text for another process, and what is refused.
#include "tracefs/broker/spec.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

BrokerSpec Example(BrokerKind kind) {
  BrokerSpec spec;
  spec.kind = kind;
  spec.servers = {"a:1", "[::1]:2"};
  spec.topic = "audit.traces";
  spec.compression = "lz4";
  spec.message_bytes = 123'456;
  spec.user = "fleet";
  spec.password = "/etc/password";
  spec.sasl = "scram-sha-256";
  spec.ca = "/ca.pem";
  spec.host = "web1.example";
  spec.tracer = "trace";
  spec.stream = "S";
  spec.stream_bytes = 1u << 30;
  spec.create = true;
  spec.lines = true;
  return spec;
}

TEST(BrokerSpecTest, TextSaysAllOfIt) {
  for (const BrokerKind kind : {BrokerKind::kNats, BrokerKind::kKafka}) {
    const std::string text = Example(kind).Text();
    const Result<BrokerSpec> again = BrokerSpec::Parse(text);
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->Text(), text);
    EXPECT_EQ(again->kind, kind);
    EXPECT_EQ(again->topic, "audit.traces");
    EXPECT_EQ(again->message_bytes, 123'456u);
    EXPECT_TRUE(again->lines);
  }
}

TEST(BrokerSpecTest, Malicious_TextOfNoSpecIsRefused) {
  const std::string text = Example(BrokerKind::kKafka).Text();
  for (size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(BrokerSpec::Parse(text.substr(0, length)).ok()) << length;
  }
  std::string other = text;
  other.replace(other.find("kafka"), 5, "fluff");
  EXPECT_FALSE(BrokerSpec::Parse(other).ok());
  EXPECT_FALSE(BrokerSpec::Parse(R"({"kind": 3})").ok());
}

TEST(BrokerSpecTest, APasswordInClearNeedsTls) {
  BrokerSpec spec = Example(BrokerKind::kKafka);
  spec.sasl = "plain";
  EXPECT_TRUE(spec.CheckSecrets().ok());
  spec.ca.clear();
  EXPECT_EQ(spec.CheckSecrets().code(), StatusCode::kInvalid);
  spec.sasl = "scram-sha-512";
  EXPECT_TRUE(spec.CheckSecrets().ok());
}

TEST(BrokerSpecTest, NamesOfKinds) {
  EXPECT_EQ(ParseBrokerKind("kafka"), BrokerKind::kKafka);
  EXPECT_EQ(ParseBrokerKind("nats"), BrokerKind::kNats);
  EXPECT_EQ(ParseBrokerKind("rabbit"), std::nullopt);
  EXPECT_EQ(Example(BrokerKind::kKafka).Name(), "kafka:a:1,[::1]:2");
}

}  // namespace
}  // namespace tracefs

// What is said of a broker: as text for another process, and what is refused.
#include "tracefs/broker/spec.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

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
  EXPECT_TRUE(spec.CheckSecrets("").ok());
  spec.ca.clear();
  EXPECT_EQ(spec.CheckSecrets("").code(), StatusCode::kInvalid);
  // A broker of this machine may name others.
  spec.servers = {"127.0.0.1:9092"};
  EXPECT_EQ(spec.CheckSecrets("").code(), StatusCode::kInvalid);
  spec.sasl = "scram-sha-512";
  EXPECT_TRUE(spec.CheckSecrets("").ok());
}

TEST(BrokerSpecTest, NatsGetsNoPasswordInClearButOnThisMachine) {
  BrokerSpec spec = Example(BrokerKind::kNats);
  EXPECT_TRUE(spec.CheckSecrets("").ok());
  spec.ca.clear();
  const Status refused = spec.CheckSecrets("say so");
  EXPECT_EQ(refused.code(), StatusCode::kInvalid);
  EXPECT_NE(refused.message().find("say so"), std::string::npos);
  for (const char* server : {"localhost:1", "127.0.0.2:1", "[::1]:1"}) {
    spec.servers = {server};
    EXPECT_TRUE(spec.CheckSecrets("").ok()) << server;
    spec.servers = {server, "web1:1"};
    EXPECT_FALSE(spec.CheckSecrets("").ok()) << server;
  }
  for (const char* server : {"localhost.example:1", "127.0.0.1.example:1",
                             "128.0.0.1:1", "[::2]:1", "[::ffff:8.8.8.8]:1"}) {
    spec.servers = {server};
    EXPECT_FALSE(spec.CheckSecrets("").ok()) << server;
  }
  spec.clear = true;
  EXPECT_TRUE(spec.CheckSecrets("").ok());
  spec.clear = false;
  spec.user.clear();
  EXPECT_TRUE(spec.CheckSecrets("").ok());
}

// All names of up to four of these bytes.
TEST(BrokerSpecTest, NoTwoHostsShareATokenOfSubjects) {
  std::map<std::string, std::string> hosts;
  std::vector<std::string> names = {""};
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].size() < 4) {
      for (const char c : {'a', '1', '.', '-', '_'})
        names.push_back(names[i] + c);
    }
    if (!IsHostName(names[i])) continue;
    const std::string token = SubjectToken(names[i]);
    EXPECT_EQ(token.find_first_of(".*> "), token.npos);
    const auto [other, fresh] = hosts.emplace(token, names[i]);
    EXPECT_TRUE(fresh) << names[i] << " and " << other->second << ": " << token;
  }
  EXPECT_EQ(SubjectToken("web1.example"), "web1_example");
  EXPECT_TRUE(IsTracerName("build_trace"));
  EXPECT_FALSE(IsTracerName("build.trace"));
}

TEST(BrokerSpecTest, NamesOfKinds) {
  EXPECT_EQ(ParseBrokerKind("kafka"), BrokerKind::kKafka);
  EXPECT_EQ(ParseBrokerKind("nats"), BrokerKind::kNats);
  EXPECT_EQ(ParseBrokerKind("rabbit"), std::nullopt);
  EXPECT_EQ(Example(BrokerKind::kKafka).Name(), "kafka:a:1,[::1]:2");
}

}  // namespace
}  // namespace tracefs

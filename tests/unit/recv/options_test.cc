// The command line of tracefs-recv: what is refused, and what it says then.
#include "tracefs/recv/options.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

Result<RecvOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "tracefs-recv");
  return ParseRecvOptions(static_cast<int>(words.size()), words.data());
}

std::string Message(std::vector<const char*> words) {
  const auto options = Parse(std::move(words));
  if (options.ok()) return "accepted";
  EXPECT_EQ(options.status().code(), StatusCode::kInvalid);
  return options.status().message();
}

TEST(RecvOptionsTest, AddressesAndLimits) {
  const auto options = Parse({"--listen",
                              "tcp::9900",
                              "--listen",
                              "unix:/run/x",
                              "--out",
                              "/d",
                              "--max-clients",
                              "7",
                              "--max-per-peer",
                              "3",
                              "--max-block",
                              "1M",
                              "--max-trace",
                              "2G",
                              "--max-traces",
                              "9",
                              "--user",
                              "traces",
                              "--sandbox",
                              "off",
                              "-q"});
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->listen.size(), 2u);
  EXPECT_EQ(options->out, "/d");
  EXPECT_EQ(options->limits.max_clients, 7u);
  EXPECT_EQ(options->limits.max_clients_per_peer, 3u);
  EXPECT_EQ(options->limits.max_block_bytes, 1u << 20);
  EXPECT_EQ(options->max_trace_bytes, uint64_t{2} << 30);
  EXPECT_EQ(options->max_traces, 9u);
  EXPECT_EQ(options->user, "traces");
  EXPECT_FALSE(options->sandbox);
  EXPECT_TRUE(options->quiet);
  EXPECT_TRUE(Parse({"--listen", "tcp::1", "--out", "/d"})->sandbox);
}

TEST(RecvOptionsTest, WhatIsMissingOrTooMuchIsNamed) {
  EXPECT_NE(Message({}).find("--listen"), std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1"}).find("either --out"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--out", "/d", "--format", "jsonl"})
                .find("either --out"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tls::1", "--out", "/d"}).find("--ca"),
            std::string::npos);
  EXPECT_NE(
      Message({"--listen", "tcp::1", "--out", "/d", "--ca", "x"}).find("tls:"),
      std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--out", "/d", "--key", "x"})
                .find("--format"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--format", "jsno"}).find("jsonl"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "upd:x:1", "--out", "/d"}).find("tcp:"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--out", "/d", "--max-clients", "0"})
                .find("from 1 to 1000000"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--out", "/d", "--sandbox", "no"})
                .find("there are on, off"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--format", "jsonl", "--max-memory",
                     "64M"})
                .find("give at least"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--out", "/d", "--max-memory", "1G"})
                .find("is for --format"),
            std::string::npos);
  EXPECT_EQ(Message({"--listen", "tcp::1", "--format", "jsonl", "--max-memory",
                     "64M", "--max-block", "1M"}),
            "accepted");
  EXPECT_NE(Message({"stray"}).find("--help"), std::string::npos);
}

TEST(RecvOptionsTest, BrokersAndWhatIsOfWhich) {
  const auto kafka =
      Parse({"--from", "kafka:a:9092,b:9093", "--out", "/d", "--topic",
             "audit.traces", "--broker-user", "u", "--broker-password", "/p",
             "--sasl", "scram-sha-256", "--redeliver", "6s"});
  ASSERT_TRUE(kafka.ok()) << kafka.status().message();
  const BrokerSpec& spec = kafka->fleet->broker;
  EXPECT_EQ(spec.kind, BrokerKind::kKafka);
  EXPECT_EQ(spec.Name(), "kafka:a:9092,b:9093");
  EXPECT_EQ(spec.topic, "audit.traces");
  EXPECT_EQ(spec.sasl, "scram-sha-256");
  EXPECT_EQ(kafka->fleet->consumer.patience, std::chrono::seconds(6));
  const auto from = [](std::vector<const char*> more) {
    more.insert(more.begin(), {"--out", "/d", "--from"});
    return Message(std::move(more));
  };
  EXPECT_EQ(from({"kafka:a:1"}), "accepted");
  EXPECT_NE(from({"rabbit:a:1"}).find("kafka:HOST:PORT"), std::string::npos);
  EXPECT_NE(from({"kafka:a:1", "--subject", "s"}).find("nats:"),
            std::string::npos);
  EXPECT_NE(from({"kafka:a:1", "--create"}).find("nats:"), std::string::npos);
  EXPECT_NE(from({"nats:a:1", "--topic", "s"}).find("kafka:"),
            std::string::npos);
  EXPECT_NE(from({"kafka:a:1", "--topic", "a b"}).find("--topic"),
            std::string::npos);
  EXPECT_NE(from({"kafka:a:1", "--redeliver", "5s"}).find("at least 6s"),
            std::string::npos);
  EXPECT_NE(from({"kafka:a:1", "--sasl", "plain"}).find("--broker-user"),
            std::string::npos);
  EXPECT_NE(from({"kafka:a:1", "--broker-user", "u", "--broker-password", "/p",
                  "--sasl", "gssapi"})
                .find("scram-sha-512"),
            std::string::npos);
  EXPECT_NE(from({"kafka:a:1", "--broker-user", "u", "--broker-password", "/p",
                  "--sasl", "plain"})
                .find("TLS"),
            std::string::npos);
}

}  // namespace
}  // namespace tracefs

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
                .find("between 1"),
            std::string::npos);
  EXPECT_NE(Message({"--listen", "tcp::1", "--out", "/d", "--sandbox", "no"})
                .find("neither on nor off"),
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

}  // namespace
}  // namespace tracefs

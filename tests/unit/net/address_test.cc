// Addresses as people write them.
#include "tracefs/net/address.h"

#include <gtest/gtest.h>

#include <string_view>
#include <utility>

namespace tracefs::net {
namespace {

TEST(AddressTest, HostAndPort) {
  const auto address =
      ParseAddress(Transport::kTcp, "collector.example:9900", false);
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "collector.example");
  EXPECT_EQ(address->port, "9900");
  EXPECT_EQ(address->Text(), "tcp:collector.example:9900");
}

TEST(AddressTest, NumbersOfTheNewProtocolStandBetweenBrackets) {
  const auto address = ParseAddress(Transport::kTls, "[fe80::1]:443", false);
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "fe80::1");
  EXPECT_EQ(address->Text(), "tls:[fe80::1]:443");
  EXPECT_FALSE(ParseAddress(Transport::kTls, "fe80::1:443", false).ok());
}

TEST(AddressTest, IsTakenAsPeoplePasteIt) {
  for (const std::string_view text :
       {"tcp://a.example:9900", "tcp://a.example:9900/", "//a.example:9900",
        "a.example:9900"}) {
    const auto address = ParseAddress(Transport::kTcp, text, false);
    ASSERT_TRUE(address.ok()) << text << ": " << address.status().message();
    EXPECT_EQ(address->Text(), "tcp:a.example:9900") << text;
  }
  for (const auto& [text, want] :
       {std::pair("tcp://[::1]:9900/", "tcp:[::1]:9900"),
        std::pair("tls://a:1", "tls:a:1"), std::pair("a:1", "tcp:a:1"),
        std::pair("[::1]:1", "tcp:[::1]:1"), std::pair(":1", "tcp::1"),
        std::pair("unix:///run/s", "unix:/run/s"),
        std::pair("unix:/run/s", "unix:/run/s"),
        std::pair("unix://run/s", "unix://run/s")}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << text << ": " << address.status().message();
    EXPECT_EQ(address->Text(), want) << text;
  }
}

TEST(AddressTest, WhatIsMeantForAnotherTransportIsRefused) {
  for (const std::string_view text :
       {"tls://a:1", "http://a:1", "nats://a:1", "user:secret@a:1",
        "tcp://user@a:1", "tcp://a:1/path", "tcp:/a:1", "tcp://tcp://a:1"}) {
    EXPECT_FALSE(ParseAddress(Transport::kTcp, text, false).ok()) << text;
  }
  EXPECT_FALSE(ParseListenAddress("tlss:a:1").ok());
  EXPECT_FALSE(ParseListenAddress("nats://a:1").ok());
  const auto secret =
      ParseAddress(Transport::kTcp, "tcp://user:secret@a:1", false);
  EXPECT_NE(secret.status().message().find("which options take them"),
            std::string::npos);
}

TEST(AddressTest, WhatIsMissingIsNamed) {
  const auto message = [](std::string_view text) {
    const auto address = ParseAddress(Transport::kTcp, text, false);
    return address.ok() ? "" : address.status().message();
  };
  EXPECT_NE(message("collector").find("lacks a port"), std::string::npos);
  EXPECT_NE(message(":9900").find("lacks a host"), std::string::npos);
  EXPECT_NE(message("a:b").find("no port"), std::string::npos);
  EXPECT_NE(message("a:65536").find("no port"), std::string::npos);
  EXPECT_NE(message("a:0").find("no port"), std::string::npos);
  EXPECT_NE(message("").find("lacks a port"), std::string::npos);
}

// A client of a mount gets addresses as text and connects to them.
TEST(AddressTest, TheTextOfAnAddressLeadsBackToIt) {
  for (const Address& address : {
           Address{Transport::kTcp, "collector.example", "9900"},
           Address{Transport::kTls, "fe80::1", "443"},
           Address{Transport::kUdp, "10.0.0.1", "514"},
           Address{Transport::kUnix, "/run/a:b"},
           Address{Transport::kSeqpacket, "relative"},
           Address{Transport::kDatagram, "/dev/log"},
       }) {
    const auto read = ParseAddressText(address.Text());
    ASSERT_TRUE(read.ok()) << read.status().message();
    EXPECT_EQ(read->transport, address.transport);
    EXPECT_EQ(read->host, address.host);
    EXPECT_EQ(read->port, address.port);
  }
  for (const char* text : {"", "tcp", "tcp:", "tcp::9900", "tcp:h:0",
                           "unix:", "TCP:h:1", "ftp:h:1", "/run/socket"}) {
    EXPECT_FALSE(ParseAddressText(text).ok()) << text;
  }
}

TEST(AddressTest, ListeningNeedsNoHostAndTakesAnyPort) {
  EXPECT_TRUE(ParseListenAddress("tcp::0").ok());
  EXPECT_TRUE(ParseListenAddress("tls:[::]:9901").ok());
  EXPECT_TRUE(ParseListenAddress("seqpacket:/run/x").ok());
}

TEST(AddressTest, AnUnknownKindIsToldWithTheNearestKnownOne) {
  const auto address = ParseListenAddress("unxi:/run/x");
  ASSERT_FALSE(address.ok());
  EXPECT_NE(address.status().message().find("did you mean 'unix'"),
            std::string::npos);
  EXPECT_FALSE(ParseListenAddress("tcp").ok());
}

TEST(AddressTest, APathFitsIntoASocketAddress) {
  EXPECT_TRUE(ParseAddress(Transport::kUnix, std::string(107, 'x'), true).ok());
  EXPECT_FALSE(
      ParseAddress(Transport::kUnix, std::string(108, 'x'), true).ok());
  EXPECT_FALSE(ParseAddress(Transport::kUnix, "", true).ok());
}

}  // namespace
}  // namespace tracefs::net

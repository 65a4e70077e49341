// Publisher and consumer of Kafka against the mock cluster of librdkafka, which
// fails as it is told. Loopback only.
#include <gtest/gtest.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <poll.h>

#include <array>
#include <chrono>
#include <map>
#include <set>

#include "tracefs/broker/consumer.h"
#include "tracefs/broker/publisher.h"

namespace tracefs {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kTopic[] = "traces";
constexpr int kPartitions = 4;
// Numbers of requests in Kafka's protocol.
constexpr int16_t kProduce = 0;
constexpr int16_t kInitProducerId = 22;

class KafkaTest : public ::testing::Test {
 protected:
  KafkaTest() {
    std::array<char, 512> text{};
    rd_kafka_conf_t* const conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, nullptr);
    handle_ = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size());
    cluster_ = rd_kafka_mock_cluster_new(handle_, 3);
    rd_kafka_mock_topic_create(cluster_, kTopic, kPartitions, 3);
    spec_.kind = BrokerKind::kKafka;
    auto servers = ParseServers(rd_kafka_mock_cluster_bootstraps(cluster_));
    spec_.servers = *std::move(servers);
    spec_.topic = kTopic;
    spec_.host = "web1.example";
    spec_.tracer = "trace";
  }
  ~KafkaTest() override {
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(handle_);
  }

  std::unique_ptr<Publisher> Publish() { return Publish(spec_); }
  static std::unique_ptr<Publisher> Publish(const BrokerSpec& spec) {
    auto publisher = MakePublisher(spec);
    EXPECT_TRUE(publisher.ok()) << publisher.status().message();
    return publisher.ok() ? *std::move(publisher) : nullptr;
  }
  std::unique_ptr<Consumer> Consume(milliseconds patience = seconds(6)) {
    auto consumer = MakeConsumer(spec_, {.patience = patience});
    EXPECT_TRUE(consumer.ok()) << consumer.status().message();
    return consumer.ok() ? *std::move(consumer) : nullptr;
  }

  // Waits, as the courier does, for an event.
  static Result<uint64_t> Await(Publisher& publisher, uint64_t count) {
    const auto until = Clock::now() + seconds(40);
    for (;;) {
      const Result<uint64_t> all = publisher.Acknowledged();
      if (!all.ok() || *all >= count || Clock::now() > until) return all;
      pollfd ready = {publisher.event_fd(), POLLIN, 0};
      ::poll(&ready, 1, 5000);
    }
  }
  void PublishAll(int first, int count) {
    const auto publisher = Publish();
    ASSERT_NE(publisher, nullptr);
    for (int i = first; i < first + count; ++i) {
      const std::string text = std::to_string(i);
      ASSERT_TRUE(publisher->Publish("id-" + text, AsBytes(text)).ok());
    }
    const auto all = Await(*publisher, static_cast<uint64_t>(count));
    ASSERT_TRUE(all.ok()) << all.status().message();
    ASSERT_EQ(*all, static_cast<uint64_t>(count));
  }
  // Until there are `count` bodies; those that came, in their order.
  static std::vector<Delivery> FetchAll(Consumer& consumer, size_t count) {
    std::vector<Delivery> all;
    const auto until = Clock::now() + seconds(40);
    while (all.size() < count && Clock::now() < until) {
      auto fetched = consumer.Fetch(100, milliseconds(200));
      EXPECT_TRUE(fetched.ok()) << fetched.status().message();
      if (!fetched.ok()) break;
      for (Delivery& one : *fetched) all.push_back(std::move(one));
    }
    return all;
  }
  static std::vector<uint64_t> NumbersOf(const std::vector<Delivery>& all) {
    std::vector<uint64_t> numbers;
    for (const Delivery& one : all) numbers.push_back(one.number);
    return numbers;
  }
  void PushErrors(int16_t request, size_t count, rd_kafka_resp_err_t error) {
    const std::vector<rd_kafka_resp_err_t> errors(count, error);
    rd_kafka_mock_push_request_errors_array(cluster_, request, count,
                                            errors.data());
  }

  rd_kafka_t* handle_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  BrokerSpec spec_;
};

TEST_F(KafkaTest, MessagesOfAHostComeInTheirOrder) {
  PublishAll(0, 200);
  const auto consumer = Consume();
  const std::vector<Delivery> all = FetchAll(*consumer, 200);
  ASSERT_EQ(all.size(), 200u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].body, std::to_string(i));
    EXPECT_EQ(all[i].host, "web1.example");
    EXPECT_EQ(all[i].tracer, "trace");
    EXPECT_GT(all[i].time_ns, int64_t{1'600'000'000} * 1'000'000'000);
  }
}

TEST_F(KafkaTest, WhatWasNotAcknowledgedComesToTheNextOne) {
  PublishAll(0, 50);
  {
    const auto consumer = Consume();
    const std::vector<Delivery> all = FetchAll(*consumer, 50);
    ASSERT_EQ(all.size(), 50u);
    std::vector<uint64_t> numbers = NumbersOf(all);
    // All but the eleventh.
    numbers.erase(numbers.begin() + 10);
    ASSERT_TRUE(consumer->Acknowledge(numbers).ok());
  }
  {
    const auto consumer = Consume();
    const std::vector<Delivery> all = FetchAll(*consumer, 40);
    ASSERT_EQ(all.size(), 40u);
    EXPECT_EQ(all.front().body, "10");
    ASSERT_TRUE(consumer->Acknowledge(NumbersOf(all)).ok());
  }
  PublishAll(50, 1);
  const auto consumer = Consume();
  const std::vector<Delivery> all = FetchAll(*consumer, 1);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all.front().body, "50");
}

TEST_F(KafkaTest, AGroupSharesWhatSeveralHostsSend) {
  const auto first = Consume();
  const auto second = Consume();
  std::map<std::string, int> seen;
  int open = 0;
  constexpr int kHosts = 12;
  constexpr int kEach = 20;
  for (int host = 0; host < kHosts; ++host) {
    BrokerSpec spec = spec_;
    spec.host = "h" + std::to_string(host);
    const auto publisher = Publish(spec);
    for (int i = 0; i < kEach; ++i) {
      const std::string text = spec.host + '-' + std::to_string(i);
      ASSERT_TRUE(publisher->Publish(text, AsBytes(text)).ok());
    }
    ASSERT_TRUE(Await(*publisher, kEach).ok());
  }
  const auto until = Clock::now() + seconds(40);
  bool both[2] = {false, false};
  while (open < kHosts * kEach && Clock::now() < until) {
    for (Consumer* one : {first.get(), second.get()}) {
      auto fetched = one->Fetch(100, milliseconds(100));
      ASSERT_TRUE(fetched.ok()) << fetched.status().message();
      for (const Delivery& delivery : *fetched) {
        // One may have it before the other has joined, and then both.
        open += ++seen[delivery.body] == 1;
        both[one == second.get()] = true;
      }
      ASSERT_TRUE(one->Acknowledge(NumbersOf(*fetched)).ok());
    }
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kHosts * kEach));
  EXPECT_TRUE(both[0]);
}

TEST_F(KafkaTest, ErrorsThatPassAreWaitedFor) {
  const auto publisher = Publish();
  PushErrors(kProduce, 5, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
  PushErrors(kProduce, 3, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS);
  PushErrors(kProduce, 2, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT);
  for (int i = 0; i < 100; ++i) {
    const std::string text = std::to_string(i);
    ASSERT_TRUE(publisher->Publish(text, AsBytes(text)).ok());
  }
  const auto all = Await(*publisher, 100);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(*all, 100u);
  // In order and none twice, though they were sent several times.
  const auto consumer = Consume();
  const std::vector<Delivery> came = FetchAll(*consumer, 100);
  ASSERT_EQ(came.size(), 100u);
  for (size_t i = 0; i < came.size(); ++i) {
    EXPECT_EQ(came[i].body, std::to_string(i));
  }
}

TEST_F(KafkaTest, AFencedProducerSaysSoAndIsOver) {
  const auto publisher = Publish();
  ASSERT_TRUE(publisher->Publish("a", AsBytes("a")).ok());
  ASSERT_TRUE(Await(*publisher, 1).ok());
  PushErrors(kProduce, 1, RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
  ASSERT_TRUE(publisher->Publish("b", AsBytes("b")).ok());
  const auto all = Await(*publisher, 2);
  ASSERT_FALSE(all.ok());
  EXPECT_NE(all.status().message().find("Kafka"), std::string::npos)
      << all.status().message();
  // The next one goes on.
  PublishAll(1, 1);
}

TEST_F(KafkaTest, WhoMayNotProduceIsToldSo) {
  PushErrors(kInitProducerId, 1,
             RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
  auto publisher = MakePublisher(spec_);
  Status status = publisher.status();
  if (publisher.ok()) {
    // It may know by now, or when it is acknowledged.
    status = (*publisher)->Publish("a", AsBytes("a"));
    if (status.ok()) status = Await(**publisher, 1).status();
  }
  EXPECT_NE(status.message().find("uthoriz"), std::string::npos)
      << status.message();
}

TEST_F(KafkaTest, ATopicThatIsRefusedIsNamed) {
  rd_kafka_mock_topic_set_error(cluster_, kTopic,
                                RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
  const auto publisher = MakePublisher(spec_);
  ASSERT_FALSE(publisher.ok());
  EXPECT_NE(publisher.status().message().find("topic 'traces'"),
            std::string::npos)
      << publisher.status().message();
  EXPECT_EQ(publisher.status().error(), EACCES);
}

TEST_F(KafkaTest, ABrokerThatIsAwayIsToldWithinSeconds) {
  BrokerSpec spec = spec_;
  spec.servers = {"127.0.0.1:1"};
  const auto before = Clock::now();
  const auto publisher = MakePublisher(spec);
  ASSERT_FALSE(publisher.ok());
  EXPECT_NE(publisher.status().message().find("refused"), std::string::npos)
      << publisher.status().message();
  EXPECT_FALSE(MakeConsumer(spec, {}).ok());
  EXPECT_LT(Clock::now() - before, seconds(15));
}

TEST_F(KafkaTest, OneOfThreeBrokersDownAndUpLosesNothing) {
  const auto publisher = Publish();
  uint64_t published = 0;
  const auto publish = [&](int count) {
    for (int i = 0; i < count; ++i) {
      const std::string text = std::to_string(published);
      ASSERT_TRUE(publisher->Publish(text, AsBytes(text)).ok());
      ++published;
    }
  };
  publish(20);
  for (int broker = 1; broker <= 3; ++broker) {
    rd_kafka_mock_broker_set_down(cluster_, broker);
    for (int i = 0; i < kPartitions; ++i) {
      rd_kafka_mock_partition_set_leader(cluster_, kTopic, i, broker % 3 + 1);
    }
    publish(20);
    const auto all = Await(*publisher, published);
    ASSERT_TRUE(all.ok()) << all.status().message();
    rd_kafka_mock_broker_set_up(cluster_, broker);
  }
  ASSERT_TRUE(Await(*publisher, published).ok());
  const auto consumer = Consume();
  std::set<std::string> seen;
  for (const Delivery& one : FetchAll(*consumer, published)) {
    seen.insert(one.body);
  }
  EXPECT_EQ(seen.size(), published);
}

// What is sent beside what a driver would.
TEST_F(KafkaTest, Malicious_HostsThatTheKeyDoesNotNameAreNobodys) {
  std::array<char, 512> text{};
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(conf, nullptr);
  rd_kafka_conf_set(conf, "bootstrap.servers",
                    rd_kafka_mock_cluster_bootstraps(cluster_), text.data(),
                    text.size());
  rd_kafka_t* const client =
      rd_kafka_new(RD_KAFKA_PRODUCER, conf, text.data(), text.size());
  struct Forged {
    std::string key;
    std::string host;
    std::string tracer;
  };
  const std::vector<Forged> forged = {
      {"", "web1", "trace"},
      {"web1/trace", "web2", "trace"},
      {"web1/trace", "", "trace"},
      {"../x/trace", "../x", "trace"},
      {"web1/a/b", "web1", "a/b"},
      {std::string(300, 'a') + "/t", std::string(300, 'a'), "t"}};
  for (const Forged& one : forged) {
    rd_kafka_headers_t* const headers = rd_kafka_headers_new(2);
    rd_kafka_header_add(headers, kHostHeader, -1, one.host.data(),
                        static_cast<ssize_t>(one.host.size()));
    rd_kafka_header_add(headers, kTracerHeader, -1, one.tracer.data(),
                        static_cast<ssize_t>(one.tracer.size()));
    rd_kafka_producev(client, RD_KAFKA_V_TOPIC(kTopic),
                      RD_KAFKA_V_KEY(one.key.data(), one.key.size()),
                      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
  }
  // Without any header, and one from the year 2100.
  rd_kafka_producev(client, RD_KAFKA_V_TOPIC(kTopic), RD_KAFKA_V_END);
  rd_kafka_headers_t* const headers = rd_kafka_headers_new(2);
  rd_kafka_header_add(headers, kHostHeader, -1, "web1", 4);
  rd_kafka_header_add(headers, kTracerHeader, -1, "trace", 5);
  rd_kafka_producev(client, RD_KAFKA_V_TOPIC(kTopic),
                    RD_KAFKA_V_KEY("web1/trace", 10),
                    RD_KAFKA_V_TIMESTAMP(int64_t{4'102'444'800'000}),
                    RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
  ASSERT_EQ(rd_kafka_flush(client, 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
  rd_kafka_destroy(client);
  const auto consumer = Consume();
  const std::vector<Delivery> all = FetchAll(*consumer, forged.size() + 2);
  ASSERT_EQ(all.size(), forged.size() + 2);
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  int ours = 0;
  for (const Delivery& one : all) {
    EXPECT_LE(one.time_ns, now);
    if (one.host.empty()) continue;
    ++ours;
    EXPECT_EQ(one.host, "web1");
  }
  EXPECT_EQ(ours, 1);
}

}  // namespace
}  // namespace tracefs

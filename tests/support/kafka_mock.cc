// A cluster of Kafka on loopback that tests and scripts/fleet-demo command: the
// mock cluster of librdkafka, which keeps what it is sent in memory, 5 MB of
// each partition.
//
//   kafka_mock BROKERS TOPIC PARTITIONS
//
// prints "servers HOST:PORT,…" and then takes commands, a line each, and
// answers each with a line that begins with "ok" or "error":
//
//   errors API CODE COUNT     the next COUNT requests of that kind (their
//                             numbers are Kafka's) fail with that error
//   down BROKER, up BROKER    it hangs up, and takes no connection
//   rtt BROKER MS             it answers so much later
//   leader PARTITION BROKER
//   send KEY HOST TRACER TIME_MS FILE
//                             a message; "-": without. TIME_MS 0: now
//   take FILE                 all messages of the topic: "KEY ID SIZE\n", body
//   lag GROUP                 "ok N": messages that the group has not committed
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr int kPatienceMs = 10'000;

[[noreturn]] void Die(const std::string& why) {
  std::fprintf(stderr, "kafka_mock: %s\n", why.c_str());
  std::exit(1);
}

// A client of the cluster, or what the cluster needs of one.
rd_kafka_t* Client(rd_kafka_type_t type, const std::string& servers) {
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  const auto set = [&](const char* name, const char* value) {
    if (rd_kafka_conf_set(conf, name, value, text.data(), text.size()) !=
        RD_KAFKA_CONF_OK) {
      Die(text.data());
    }
  };
  set("client.id", "kafka_mock");
  if (!servers.empty()) set("bootstrap.servers", servers.c_str());
  if (type == RD_KAFKA_CONSUMER) {
    set("group.id", "kafka_mock");
    set("enable.partition.eof", "true");
    set("auto.offset.reset", "earliest");
  }
  rd_kafka_conf_set_log_cb(conf, nullptr);
  rd_kafka_t* const client = rd_kafka_new(type, conf, text.data(), text.size());
  if (client == nullptr) Die(text.data());
  return client;
}

struct World {
  std::string topic;
  int partitions = 0;
  rd_kafka_mock_cluster_t* cluster = nullptr;
  std::string servers;
};

std::string Said(rd_kafka_resp_err_t error) {
  return error == RD_KAFKA_RESP_ERR_NO_ERROR
             ? "ok"
             : std::string("error ") + rd_kafka_err2str(error);
}

std::string Errors(const World& world, std::istream& words) {
  int16_t api = -1;
  int code = 0;
  size_t count = 0;
  if (!(words >> api >> code >> count)) return "error errors API CODE COUNT";
  const std::vector<rd_kafka_resp_err_t> errors(
      count, static_cast<rd_kafka_resp_err_t>(code));
  rd_kafka_mock_push_request_errors_array(world.cluster, api, count,
                                          errors.data());
  return "ok";
}

std::string Send(const World& world, std::istream& words) {
  std::string key;
  std::string host;
  std::string tracer;
  std::string file;
  int64_t time_ms = 0;
  if (!(words >> key >> host >> tracer >> time_ms >> file)) {
    return "error send KEY HOST TRACER TIME_MS FILE";
  }
  std::ifstream in(file, std::ios::binary);
  const std::string body((std::istreambuf_iterator<char>(in)), {});
  rd_kafka_t* const client = Client(RD_KAFKA_PRODUCER, world.servers);
  rd_kafka_headers_t* const headers = rd_kafka_headers_new(2);
  if (host != "-") {
    rd_kafka_header_add(headers, "Tracefs-Host", -1, host.data(),
                        static_cast<ssize_t>(host.size()));
  }
  if (tracer != "-") {
    rd_kafka_header_add(headers, "Tracefs-Tracer", -1, tracer.data(),
                        static_cast<ssize_t>(tracer.size()));
  }
  if (key == "-") key.clear();
  rd_kafka_resp_err_t error = rd_kafka_producev(
      client, RD_KAFKA_V_TOPIC(world.topic.c_str()),
      RD_KAFKA_V_KEY(key.data(), key.size()),
      RD_KAFKA_V_VALUE(const_cast<char*>(body.data()), body.size()),
      RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_TIMESTAMP(time_ms),
      RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
  if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
    error = rd_kafka_flush(client, kPatienceMs);
  }
  rd_kafka_destroy(client);
  return Said(error);
}

std::string HeaderOf(const rd_kafka_message_t* message, const char* name) {
  rd_kafka_headers_t* headers = nullptr;
  const void* value = nullptr;
  size_t size = 0;
  if (rd_kafka_message_headers(message, &headers) !=
          RD_KAFKA_RESP_ERR_NO_ERROR ||
      rd_kafka_header_get_last(headers, name, &value, &size) !=
          RD_KAFKA_RESP_ERR_NO_ERROR) {
    return "-";
  }
  return {static_cast<const char*>(value), size};
}

// A client that belongs to no group: it reads all from the beginning.
std::string Take(const World& world, std::istream& words) {
  std::string file;
  if (!(words >> file)) return "error take FILE";
  std::ofstream out(file, std::ios::binary);
  rd_kafka_t* const client = Client(RD_KAFKA_CONSUMER, world.servers);
  rd_kafka_poll_set_consumer(client);
  rd_kafka_topic_partition_list_t* const all =
      rd_kafka_topic_partition_list_new(world.partitions);
  for (int i = 0; i < world.partitions; ++i) {
    rd_kafka_topic_partition_list_add(all, world.topic.c_str(), i)->offset =
        RD_KAFKA_OFFSET_BEGINNING;
  }
  rd_kafka_assign(client, all);
  rd_kafka_topic_partition_list_destroy(all);
  int ended = 0;
  std::string answer = "ok";
  while (ended < world.partitions) {
    rd_kafka_message_t* const message =
        rd_kafka_consumer_poll(client, kPatienceMs);
    if (message == nullptr) {
      answer = "error timeout";
      break;
    }
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
      ++ended;
    } else if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      out << std::string(static_cast<const char*>(message->key),
                         message->key_len)
          << ' ' << HeaderOf(message, "Tracefs-Id") << ' ' << message->len
          << '\n';
      out.write(static_cast<const char*>(message->payload),
                static_cast<std::streamsize>(message->len));
    }
    rd_kafka_message_destroy(message);
  }
  rd_kafka_consumer_close(client);
  rd_kafka_destroy(client);
  return answer;
}

std::string Lag(const World& world, std::istream& words) {
  std::string group;
  if (!(words >> group)) return "error lag GROUP";
  rd_kafka_conf_t* const conf = rd_kafka_conf_new();
  std::array<char, 512> text{};
  rd_kafka_conf_set(conf, "bootstrap.servers", world.servers.c_str(),
                    text.data(), text.size());
  rd_kafka_conf_set(conf, "group.id", group.c_str(), text.data(), text.size());
  rd_kafka_conf_set_log_cb(conf, nullptr);
  rd_kafka_t* const client =
      rd_kafka_new(RD_KAFKA_CONSUMER, conf, text.data(), text.size());
  if (client == nullptr) return std::string("error ") + text.data();
  rd_kafka_topic_partition_list_t* const all =
      rd_kafka_topic_partition_list_new(world.partitions);
  for (int i = 0; i < world.partitions; ++i) {
    rd_kafka_topic_partition_list_add(all, world.topic.c_str(), i);
  }
  rd_kafka_resp_err_t error = rd_kafka_committed(client, all, kPatienceMs);
  int64_t lag = 0;
  for (int i = 0; error == RD_KAFKA_RESP_ERR_NO_ERROR && i < all->cnt; ++i) {
    int64_t low = 0;
    int64_t high = 0;
    error = rd_kafka_query_watermark_offsets(client, world.topic.c_str(),
                                             all->elems[i].partition, &low,
                                             &high, kPatienceMs);
    lag += high - (all->elems[i].offset < 0 ? low : all->elems[i].offset);
  }
  rd_kafka_topic_partition_list_destroy(all);
  rd_kafka_destroy(client);
  return Said(error) +
         (error == RD_KAFKA_RESP_ERR_NO_ERROR ? ' ' + std::to_string(lag) : "");
}

std::string Obey(const World& world, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  int32_t number = 0;
  int32_t other = 0;
  words >> command;
  if (command == "errors") return Errors(world, words);
  if (command == "send") return Send(world, words);
  if (command == "take") return Take(world, words);
  if (command == "lag") return Lag(world, words);
  words >> number >> other;
  if (command == "down") {
    return Said(rd_kafka_mock_broker_set_down(world.cluster, number));
  }
  if (command == "up") {
    return Said(rd_kafka_mock_broker_set_up(world.cluster, number));
  }
  if (command == "rtt") {
    return Said(rd_kafka_mock_broker_set_rtt(world.cluster, number, other));
  }
  if (command == "leader") {
    return Said(rd_kafka_mock_partition_set_leader(
        world.cluster, world.topic.c_str(), number, other));
  }
  return "error unknown command " + command;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) Die("kafka_mock BROKERS TOPIC PARTITIONS");
  World world;
  world.topic = argv[2];
  world.partitions = std::atoi(argv[3]);
  rd_kafka_t* const host = Client(RD_KAFKA_PRODUCER, "");
  world.cluster = rd_kafka_mock_cluster_new(host, std::atoi(argv[1]));
  if (world.cluster == nullptr) Die("no cluster");
  const rd_kafka_resp_err_t made = rd_kafka_mock_topic_create(
      world.cluster, world.topic.c_str(), world.partitions, 1);
  if (made != RD_KAFKA_RESP_ERR_NO_ERROR) Die(rd_kafka_err2str(made));
  world.servers = rd_kafka_mock_cluster_bootstraps(world.cluster);
  std::cout << "servers " << world.servers << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::cout << Obey(world, line) << std::endl;
  }
  rd_kafka_mock_cluster_destroy(world.cluster);
  rd_kafka_destroy(host);
  return 0;
}

// What clients have had changed, as a later daemon finds it.
#include "tracefs/tracers/orders.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "config/config.h"
#include "tests/unit/mount/scratch_dir.h"
#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

Order SomeOrder() {
  Order order{.id = 7,
              .suspended = true,
              .config = "{ { op = mkdir } { } { file = \"x\" } }",
              .file = "some.conf",
              .names = {{{"anna", 1001}}, {{"staff", 50}, {"", 3}}},
              .filter = "cuid = anna"};
  order.serial[3] = std::byte{9};
  order.filter_names = {{{"anna", 1001}}, {}};
  order.targets = {7, 1};
  return order;
}

TEST(OrderTest, RoundTrip_AllOfIt) {
  const Order order = SomeOrder();
  const std::optional<Order> read = Order::Decode(order.Encode());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->id, order.id);
  EXPECT_FALSE(read->removed);
  EXPECT_TRUE(read->suspended);
  EXPECT_EQ(read->config, order.config);
  EXPECT_EQ(read->file, order.file);
  EXPECT_EQ(read->serial, order.serial);
  EXPECT_EQ(read->filter, order.filter);
  EXPECT_EQ(read->targets, order.targets);
  EXPECT_EQ(read->names.users(), order.names.users());
  EXPECT_EQ(read->names.groups(), order.names.groups());
  EXPECT_EQ(read->filter_names.users(), order.filter_names.users());
}

TEST(OrderTest, OneOfAnOlderProgramHasNoTargets) {
  Order order = SomeOrder();
  order.targets.clear();
  std::string bytes = order.Encode();
  bytes[0] = 1;
  bytes.resize(bytes.size() - 4);  // of how many there are
  const std::optional<Order> read = Order::Decode(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->config, order.config);
  EXPECT_TRUE(read->targets.empty());
}

TEST(OrderTest, Malicious_WhatIsNotWholeIsNone) {
  const std::string bytes = SomeOrder().Encode();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(Order::Decode(bytes.substr(0, size))) << size;
  }
  EXPECT_FALSE(Order::Decode(bytes + '\0'));
  // Lengths and counts that lie.
  for (size_t at = 0; at + 4 <= bytes.size(); ++at) {
    std::string wrong = bytes;
    wrong.replace(at, 4, "\xff\xff\xff\xff");
    static_cast<void>(Order::Decode(wrong));
  }
}

class OrdersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = survive::Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
    area_->Use();
  }

  // Runs `life` as a daemon that is killed at its end. The descriptors that it
  // opens are its own: there is no keeper.
  void Live(const std::function<void()>& life) {
    const pid_t daemon = ::fork();
    ASSERT_GE(daemon, 0);
    if (daemon == 0) {
      life();
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }

  Config ConfigOf(const std::string& name) const {
    auto config = ParseConfig("{ { op = mkdir } { } { file = \"" + dir_.path() +
                                  "/" + name + "\" } }",
                              "some.conf", FullSchema());
    EXPECT_TRUE(config.ok()) << config.status().message();
    return *std::move(config);
  }

  // As a client's `add`, up to the start of the tracer.
  Status Add(Orders& orders, const Config& config, NameTable& names,
             std::vector<uint32_t>* ids) {
    std::vector<UniqueFd> files;
    files.emplace_back(::open(config.tracers[0].output[0].value.text.c_str(),
                              O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    auto copies = Orders::Copies(files);
    if (!copies.ok()) return copies.status();
    auto plans = PlanTracers(config, names,
                             {.first_id = orders.next_id(), .files = &files});
    if (!plans.ok()) return plans.status();
    for (const TracerPlan& plan : *plans) ids->push_back(plan.parts.id);
    Status status = orders.Prepare(config, {}, *std::move(copies), &*plans);
    // As if the trace had begun.
    for (TracerPlan& plan : *plans) plan.parts.survives->turns.store(1);
    return status;
  }

  // How many places the area still has.
  size_t Room() {
    std::vector<void*> taken;
    while (void* const place = area_->TakeBlock()) taken.push_back(place);
    for (void* const place : taken) area_->GiveBlock(place);
    return taken.size();
  }

  const ScratchDir dir_;
  std::unique_ptr<survive::Area> area_;
};

TEST_F(OrdersTest, WhatWasNotCommittedIsNotThere) {
  const size_t room = Room();
  Live([&] {
    NameTable names;
    Orders orders(*area_);
    std::vector<uint32_t> ids;
    if (!Add(orders, ConfigOf("a"), names, &ids).ok()) ::_exit(1);
  });
  EXPECT_LT(Room(), room);
  NameTable names;
  Orders orders(*area_);
  const auto plans = orders.PlanAgain(names);
  ASSERT_TRUE(plans.ok()) << plans.status().message();
  EXPECT_TRUE(plans->empty());
  EXPECT_EQ(Room(), room);
  EXPECT_EQ(orders.next_id(), 2u) << "an id was given once";
}

TEST_F(OrdersTest, WhatWasCommittedIsPlannedAgain) {
  NameTable names;
  Orders orders(*area_);
  std::vector<uint32_t> ids;
  const Status added = Add(orders, ConfigOf("a"), names, &ids);
  ASSERT_TRUE(added.ok()) << added.message();
  orders.Commit(ids, /*stays_shut=*/false);
  Orders later(*area_);
  const auto plans = later.PlanAgain(names);
  ASSERT_TRUE(plans.ok()) << plans.status().message();
  ASSERT_EQ(plans->size(), 1u);
  EXPECT_EQ((*plans)[0].parts.id, ids[0]);
  EXPECT_EQ((*plans)[0].filter->text(), " op = mkdir ");
  ASSERT_EQ((*plans)[0].files.size(), 1u);
  struct stat st;
  ASSERT_EQ(::stat((dir_.path() + "/a").c_str(), &st), 0);
  EXPECT_EQ((*plans)[0].files[0].inode, st.st_ino);
}

TEST_F(OrdersTest, WhatWasForgottenLeavesNothing) {
  const size_t room = Room();
  NameTable names;
  Orders orders(*area_);
  for (int i = 0; i < 200; ++i) {
    std::vector<uint32_t> ids;
    const Status added =
        Add(orders, ConfigOf("a" + std::to_string(i)), names, &ids);
    ASSERT_TRUE(added.ok()) << i << added.message();
    orders.Commit(ids, /*stays_shut=*/false);
    orders.Forget(ids[0]);
  }
  EXPECT_EQ(Room(), room);
  EXPECT_EQ(area_->header().added.load(), 0u);
}

TEST_F(OrdersTest, AChangeThatFailsIsUndone) {
  NameTable names;
  Orders orders(*area_);
  std::vector<uint32_t> ids;
  ASSERT_TRUE(Add(orders, ConfigOf("a"), names, &ids).ok());
  orders.Commit(ids, /*stays_shut=*/false);
  const size_t room = Room();
  bool did = false;
  EXPECT_FALSE(orders
                   .Change(
                       ids[0], [](Order& order) { order.removed = true; },
                       [&] {
                         did = true;
                         return Status::Invalid("no");
                       })
                   .ok());
  EXPECT_TRUE(did);
  EXPECT_EQ(Room(), room);
  bool removed = true;
  EXPECT_TRUE(orders
                  .Change(
                      ids[0], [&](Order& order) { removed = order.removed; },
                      [] { return Status::Ok(); })
                  .ok());
  EXPECT_FALSE(removed);
}

TEST_F(OrdersTest, Malicious_WhatIsNoOrderIsLeftOut) {
  NameTable names;
  Orders orders(*area_);
  std::vector<uint32_t> ids;
  ASSERT_TRUE(Add(orders, ConfigOf("a"), names, &ids).ok());
  orders.Commit(ids, /*stays_shut=*/false);
  area_->header().added.store(~uint64_t{0});
  area_->header().orders[0].said.store(99999);
  area_->header().traces[1].turns.store(3);
  area_->header().orders[1].said.store(1);
  Orders later(*area_);
  const auto plans = later.PlanAgain(names);
  ASSERT_TRUE(plans.ok()) << plans.status().message();
  EXPECT_TRUE(plans->empty());
  EXPECT_EQ(area_->header().added.load(), 0u);
  // Unless nothing may be done that is not recorded.
  ASSERT_TRUE(Add(orders, ConfigOf("b"), names, &ids).ok());
  orders.Commit(ids, /*stays_shut=*/true);
  for (survive::OrderRecord& record : area_->header().orders) {
    record.said.store(99999);
  }
  Orders last(*area_);
  EXPECT_FALSE(last.PlanAgain(names).ok());
}

}  // namespace
}  // namespace tracefs

// GroupRows: groups as rows of a table: their keys, then what is told of them.
#pragma once

#include <memory>

#include "tracefs/query/group_store.h"
#include "tracefs/query/grouping.h"
#include "tracefs/query/table.h"

namespace tracefs::query {

class GroupRows final : public RowSource {
 public:
  // Nothing is added to the store any more; `all`: what all groups add up to.
  GroupRows(std::shared_ptr<const GroupStore> store, GroupSpec spec,
            const Tally& all)
      : store_(std::move(store)), spec_(std::move(spec)), all_(all) {}

  size_t size() const override { return store_->entries().size(); }
  void Make(size_t i, Row* row) const override {
    MakeOf(store_->entries()[i], row);
  }
  void Fetch(size_t i, bool soon) const override {
    store_->FetchPlace(i, soon);
  }
  // Of a group that need not be in the store.
  void MakeOf(const GroupStore::Entry& entry, Row* row) const;

 private:
  const std::shared_ptr<const GroupStore> store_;
  const GroupSpec spec_;
  const Tally all_;
};

}  // namespace tracefs::query

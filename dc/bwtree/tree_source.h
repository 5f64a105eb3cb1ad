// TreeSource: finds a table's tree, for background work on the pages of all trees. Ownership: the source's; a guard
// keeps a tree alive.
#ifndef DC_BWTREE_TREE_SOURCE_H_
#define DC_BWTREE_TREE_SOURCE_H_

#include <vector>

#include "common/base/ids.h"

namespace deut::dc {

class BwTree;

class TreeSource {
 public:
  virtual ~TreeSource() = default;
  // Null: the table no longer exists. REQUIRES: a guard; the tree lives as long as the guard.
  virtual BwTree* FindTree(TableId table) = 0;
};

// Lists the existing tables, for walks over all of them.
class TableList {
 public:
  virtual ~TableList() = default;
  // Returns the ids in ascending order.
  virtual std::vector<TableId> LiveTables() = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_TREE_SOURCE_H_

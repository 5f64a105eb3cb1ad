// TreeSource: the trees there are, for those who look after pages of all of them.
#ifndef DC_BWTREE_TREE_SOURCE_H_
#define DC_BWTREE_TREE_SOURCE_H_

#include <vector>

#include "common/base/ids.h"

namespace deut::dc {

class BwTree;

class TreeSource {
 public:
  virtual ~TreeSource() = default;
  // Null: there is no such table any more. REQUIRES: a guard; the tree lives as long as it.
  virtual BwTree* FindTree(TableId table) = 0;
};

// The tables there are, for walks over all of them.
class TableList {
 public:
  virtual ~TableList() = default;
  virtual std::vector<TableId> LiveTables() = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_TREE_SOURCE_H_

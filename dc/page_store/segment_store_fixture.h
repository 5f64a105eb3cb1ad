// SegmentStoreTest: a store, and a record of every part appended to it, so that the parts can be verified. For tests.
#ifndef DC_PAGE_STORE_SEGMENT_STORE_FIXTURE_H_
#define DC_PAGE_STORE_SEGMENT_STORE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"
#include "dc/page_store/part_buffer.h"
#include "dc/page_store/segment_appender.h"
#include "dc/page_store/segment_store.h"
#include "dc/page_store/store_fixture.h"

namespace deut::dc {

// The content of an appended part.
struct Written {
  PageId page;
  uint64_t salt = 0;
  size_t bytes = 0;
};

class SegmentStoreTest : public ::testing::Test {
 protected:
  SegmentStore& store() { return *fixture_.store; }

  std::unique_ptr<SegmentAppender> NewAppender(SegmentKind kind = SegmentKind::kBase) {
    auto appender = store().NewAppender(kind);
    EXPECT_TRUE(appender.ok());
    return std::move(*appender);
  }

  // Appends a base part and records it.
  PageAddress Append(SegmentAppender& appender, uint32_t page, size_t bytes) {
    const uint64_t salt = ++salt_;
    const auto address = appender.Append(BaseHeader(PageId(page)), PayloadOf(PageId(page), salt, bytes));
    EXPECT_TRUE(address.ok()) << address.status().ToString();
    if (!address.ok()) return PageAddress();
    EXPECT_FALSE(parts_.contains(*address));
    parts_[*address] = {PageId(page), salt, bytes};
    return *address;
  }

  Status ReadsBack(SegmentStore& store, PageAddress address) {
    PartBuffer buffer;
    const Written& written = parts_.at(address);
    DEUT_RETURN_IF_ERROR(store.Read(address, written.page, &buffer));
    EXPECT_EQ(buffer.part().address, address);
    EXPECT_EQ(buffer.part().header.page, written.page);
    EXPECT_TRUE(buffer.part().payload == PayloadOf(written.page, written.salt, written.bytes));
    return Status::Ok();
  }
  Status ReadsBack(PageAddress address) { return ReadsBack(store(), address); }

  Status ReadAll(SegmentStore& store) {
    for (const auto& [address, written] : parts_) DEUT_RETURN_IF_ERROR(ReadsBack(store, address));
    return Status::Ok();
  }

  SegmentUsage UsageOf(uint64_t segment) { return store().UsageOf(segment).value_or(SegmentUsage()); }

  size_t FilesOnDisk() {
    const auto names = fixture_.storage->List(kTestPages);
    EXPECT_TRUE(names.ok());
    return names.ok() ? names->size() : 0;
  }

  // Appends parts until the appender has just moved on to another segment.
  std::vector<PageAddress> FillASegment(SegmentAppender& appender) {
    std::vector<PageAddress> addresses;
    do {
      addresses.push_back(Append(appender, 1 + static_cast<uint32_t>(addresses.size()), 5000));
    } while (addresses.back().segment() == addresses.front().segment());
    EXPECT_TRUE(appender.Write().ok());
    return addresses;
  }

  StoreFixture fixture_;
  std::map<PageAddress, Written> parts_;
  uint64_t salt_ = 0;
};

}  // namespace deut::dc

#endif  // DC_PAGE_STORE_SEGMENT_STORE_FIXTURE_H_

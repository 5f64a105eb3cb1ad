// ImageParts: the addresses of the parts of a page's image on storage: delta parts, the newest first, and a base part
// at the end.
// A value; thread-safe as such. Ownership: owns its addresses, not the parts. [LLAMA, PVLDB 6(10), 2013, section 3]
#ifndef DC_BWTREE_IMAGE_PARTS_H_
#define DC_BWTREE_IMAGE_PARTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/page_address.h"

namespace deut::dc {

class ImageParts {
 public:
  // Largest number of parts. For a page that would need more, delta parts are merged, or the whole page is written.
  static constexpr size_t kMax = kMaxPartsOfImage;

  ImageParts() = default;
  explicit ImageParts(PageAddress only) : count_(1) { parts_[0] = only; }

  // REQUIRES: count() < kMax.
  void Append(PageAddress older) { parts_[count_++] = older; }

  bool empty() const { return count_ == 0; }
  size_t count() const { return count_; }
  PageAddress newest() const { return parts_[0]; }
  PageAddress operator[](size_t i) const { return parts_[i]; }
  std::span<const PageAddress> all() const { return {parts_.data(), count_}; }

 private:
  std::array<PageAddress, kMax> parts_;
  uint8_t count_ = 0;
};

}  // namespace deut::dc

#endif  // DC_BWTREE_IMAGE_PARTS_H_

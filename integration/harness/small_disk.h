// SmallDisk: a file system of its own that can be filled to the last block and freed again: ext4 in an image file, mounted by a loop device,
// so that direct writes and ENOSPC are what they are on a real disk.
// It needs root and loop devices. The mount is seen by this process and those that it starts, and the kernel removes it with the last of
// them, however they end: the calling thread moves into a mount namespace of its own.
// Thread-safety: the thread that made it, which also starts the processes that are to see it. Ownership: its end unmounts and removes it.
#ifndef INTEGRATION_HARNESS_SMALL_DISK_H_
#define INTEGRATION_HARNESS_SMALL_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace deut::testing {

class SmallDisk {
 public:
  // In `folder`, which exists and takes the image (sparse) and the mount point. UNAVAILABLE with the reason where the machine does not
  // allow it.
  static Result<std::unique_ptr<SmallDisk>> Create(const std::string& folder, uint64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& path() const { return mount_point_; }
  // Takes every free block; then gives them back.
  Status Fill();
  void Free();

 private:
  SmallDisk(std::string image, std::string mount_point, std::string filler);
  const std::string image_, mount_point_, filler_;
};

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_SMALL_DISK_H_

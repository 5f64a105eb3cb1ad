// SmallDisk: a file system of its own that a test can fill to the last block and free again. It is ext4 in an image
// file on a loop device, so direct writes and ENOSPC behave as on a real disk. It needs root and loop devices.
// The calling thread moves into a mount namespace of its own. Only this process and those that it starts see the
// mount, and the kernel removes it with the last of them, however they end.
// Thread-safety: only the thread that made it, which must also start the processes that use the disk. Ownership: the
// destructor unmounts the file system and removes the image.
#ifndef INTEGRATION_HARNESS_SMALL_DISK_H_
#define INTEGRATION_HARNESS_SMALL_DISK_H_

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"

namespace deut::testing {

class SmallDisk {
 public:
  // `folder` must exist; it receives the image (sparse) and the mount point. UNAVAILABLE with the reason where the
  // machine does not allow it.
  static Result<std::unique_ptr<SmallDisk>> Create(const std::string& folder, uint64_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  const std::string& path() const { return mount_point_; }
  // Fill takes every free block; Free gives them back.
  Status Fill();
  void Free();

 private:
  SmallDisk(std::string image, std::string mount_point, std::string filler);
  const std::string image_, mount_point_, filler_;
};

}  // namespace deut::testing

#endif  // INTEGRATION_HARNESS_SMALL_DISK_H_

#include "integration/harness/small_disk.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/concat.h"
#include "integration/harness/process.h"

namespace deut::testing {
namespace {

Status Failed(const std::string& what) { return DEUT_ERROR(kUnavailable, what, ": ", std::strerror(errno)); }

}  // namespace

SmallDisk::SmallDisk(std::string image, std::string mount_point, std::string filler)
    : image_(std::move(image)), mount_point_(std::move(mount_point)), filler_(std::move(filler)) {}

Result<std::unique_ptr<SmallDisk>> SmallDisk::Create(const std::string& folder, uint64_t bytes) {
  if (geteuid() != 0) return DEUT_ERROR(kUnavailable, "a disk of its own needs root");
  const std::string image = Concat(folder, "/disk.image"), mount_point = Concat(folder, "/disk");
  const int file = open(image.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0) return Failed(image);
  const bool sized = ftruncate(file, static_cast<off_t>(bytes)) == 0;
  close(file);
  if (!sized) return Failed(image);
  if (unshare(CLONE_NEWNS) != 0) return Failed("a mount namespace");
  if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return Failed("mount / private");
  if (mkdir(mount_point.c_str(), 0755) != 0) return Failed(mount_point);
  const Ended made = RunProgram({"bash", "-c",
                                 Concat("PATH=$PATH:/usr/sbin:/sbin; mkfs.ext4 -q -F -m 0 '", image,
                                        "' && mount -o loop '", image, "' '", mount_point, "'")},
                                Concat(folder, "/disk.log"));
  if (made.status != 0) {
    unlink(image.c_str());
    return DEUT_ERROR(kUnavailable, "a loop-mounted disk: ", made.output);
  }
  return std::unique_ptr<SmallDisk>(new SmallDisk(image, mount_point, Concat(mount_point, "/filler")));
}

SmallDisk::~SmallDisk() {
  umount2(mount_point_.c_str(), MNT_DETACH);
  unlink(image_.c_str());
}

Status SmallDisk::Fill() {
  const int file = open(filler_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) return Failed(filler_);
  off_t at = 0;
  for (off_t piece = 64 << 20; piece >= 4096;) {
    if (fallocate(file, 0, at, piece) == 0) {
      at += piece;
    } else if (errno == ENOSPC) {
      piece /= 2;
    } else {
      const Status failed = Failed(filler_);
      close(file);
      return failed;
    }
  }
  close(file);
  return Status();
}

void SmallDisk::Free() { unlink(filler_.c_str()); }

}  // namespace deut::testing

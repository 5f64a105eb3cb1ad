// SystemFile: a file of the operating system. Its reads and writes block (pread, pwrite); the queues use its
// descriptor.
// Thread-safety: all methods from any thread. Ownership: owns the descriptor.
#ifndef COMMON_IO_SYSTEM_FILE_H_
#define COMMON_IO_SYSTEM_FILE_H_

#include <memory>
#include <string>

#include "common/io/storage.h"
#include "common/runtime/runtime.h"

namespace deut {

class SystemFile final : public File {
 public:
  // Retries on `runtime` while descriptors are short (shortage.h). The file borrows `runtime`.
  static Result<std::unique_ptr<File>> Open(Runtime& runtime, const std::string& path, const OpenOptions& options);
  ~SystemFile() override;

  const std::string& path() const override { return path_; }
  Result<size_t> Read(uint64_t offset, void* data, size_t bytes) override;
  Status Write(uint64_t offset, const void* data, size_t bytes) override;
  Status Sync() override;
  Result<uint64_t> Size() override;
  Status Truncate(uint64_t bytes) override;
  Status Allocate(uint64_t bytes) override;

  int descriptor() const { return descriptor_; }
  const OpenOptions& options() const { return options_; }

 private:
  SystemFile(Runtime& runtime, std::string path, const OpenOptions& options, int descriptor)
      : runtime_(runtime), path_(std::move(path)), options_(options), descriptor_(descriptor) {}

  Runtime& runtime_;
  const std::string path_;
  const OpenOptions options_;
  const int descriptor_;
};

// Runs `request`, whose file is a SystemFile, to its end on the calling thread.
void TransferBlocking(Runtime& runtime, IoRequest* request);

}  // namespace deut

#endif  // COMMON_IO_SYSTEM_FILE_H_

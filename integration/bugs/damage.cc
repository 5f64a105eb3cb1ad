#include "integration/bugs/damage.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "common/base/concat.h"
#include "common/io/storage.h"

namespace deut::bugs {
namespace {

constexpr uint64_t kPiece = 4096;

}  // namespace

LogDamage::LogDamage(FaultyDisk& disk, const std::string& directory) : disk_(disk) {
  const std::unique_ptr<Storage> storage = disk.Mount();
  Result<std::vector<std::string>> names = storage->List(directory);
  if (!names.ok()) return;
  std::sort(names->begin(), names->end());
  for (const std::string& name : *names) {
    const std::string path = Concat(directory, "/", name);
    const Result<std::unique_ptr<File>> file = storage->Open(path, {});
    if (!file.ok()) continue;
    std::string piece(kPiece, '\0');
    for (uint64_t offset = 0;; offset += kPiece) {
      const Result<size_t> bytes = (*file)->Read(offset, piece.data(), kPiece);
      if (!bytes.ok() || *bytes < kPiece) break;
      if (std::any_of(piece.begin(), piece.end(), [](char c) { return c != 0; })) written_.push_back({path, offset});
    }
  }
  // The last third of the log stays undamaged: it proves that the rest was durable.
  written_.resize(written_.size() * 2 / 3);
}

bool LogDamage::Do(Random& random) {
  if (written_.empty()) return false;
  const Written& where = written_[random.Below(written_.size())];
  path_ = where.path;
  // In half of the cases the bit is in the first sector of the piece, because small pieces of log are followed by
  // padding.
  offset_ = where.offset + random.Below(random.OneIn(2) ? kPiece : 512);
  bit_ = static_cast<int>(random.Below(8));
  return disk_.FlipBit(path_, offset_, bit_).ok();
}

bool LogDamage::Undo() { return disk_.FlipBit(path_, offset_, bit_).ok(); }

}  // namespace deut::bugs

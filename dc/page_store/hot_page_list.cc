#include "dc/page_store/hot_page_list.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "common/base/concat.h"
#include "common/coding/fixed.h"
#include "common/io/read_file.h"
#include "dc/page_store/frame.h"

namespace deut::dc {
namespace {

constexpr Frame kFrame{.magic = 0x544F4844, .version = 1};  // "DHOT"
constexpr size_t kZeroAt = kFrameBytes;
constexpr size_t kUsedAt = 12;
constexpr size_t kCountAt = 16;
constexpr size_t kHeaderBytes = 20;
constexpr size_t kIdBytes = sizeof(uint32_t);

void AppendIds(std::span<const PageId> ids, std::string* bytes) {
  for (const PageId id : ids) AppendU32(bytes, id.value);
}

Status WriteAll(Storage& storage, const std::string& path, std::string_view bytes) {
  DEUT_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, storage.Open(path, {.create = true, .writable = true}));
  DEUT_RETURN_IF_ERROR(file->Truncate(0));
  DEUT_RETURN_IF_ERROR(file->Write(0, bytes.data(), bytes.size()));
  return file->Sync();
}

}  // namespace

std::string EncodeHotPages(const HotPageList& list) {
  const size_t used = std::min(list.used.size(), HotPageList::kMaxPages);
  const size_t others = std::min(list.others.size(), HotPageList::kMaxPages - used);
  std::string bytes(kHeaderBytes, '\0');
  bytes.reserve(kHeaderBytes + (used + others) * kIdBytes);
  StoreU32(bytes.data() + kUsedAt, static_cast<uint32_t>(used));
  StoreU32(bytes.data() + kCountAt, static_cast<uint32_t>(used + others));
  AppendIds(std::span(list.used).first(used), &bytes);
  AppendIds(std::span(list.others).first(others), &bytes);
  SealFrame(kFrame, bytes.data(), bytes.size());
  return bytes;
}

Result<HotPageList> DecodeHotPages(std::string_view bytes, std::string_view path) {
  // A list that was not written to its end is short, or begins with zeros.
  if (bytes.size() < kHeaderBytes || FrameMagic(bytes) == 0) {
    return DEUT_ERROR(kCorruption, path, ": offset 0: not a whole list of hot pages (", bytes.size(), " bytes)");
  }
  if (FrameMagic(bytes) != kFrame.magic) {
    return DEUT_ERROR(kVersionMismatch, path, ": offset 0: the file has an unknown format; it is not changed");
  }
  if (!FrameChecksumFits(bytes)) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kFrameChecksumAt, ": the checksum does not fit the file");
  }
  if (FrameVersion(bytes) != kFrame.version) {
    return DEUT_ERROR(kVersionMismatch, path, ": offset ", kFrameVersionAt, ": format version ", FrameVersion(bytes),
                      ", this program knows ", kFrame.version, "; the file is not changed");
  }
  const uint64_t used = LoadU32(bytes.data() + kUsedAt);
  const uint64_t count = LoadU32(bytes.data() + kCountAt);
  if (LoadU16(bytes.data() + kZeroAt) != 0 || used > count || bytes.size() != kHeaderBytes + count * kIdBytes) {
    return DEUT_ERROR(kCorruption, path, ": offset ", kZeroAt, ": the header does not fit ", bytes.size(), " bytes");
  }
  HotPageList list;
  list.used.reserve(used);
  list.others.reserve(count - used);
  for (uint64_t i = 0; i < count; ++i) {
    const PageId id(LoadU32(bytes.data() + kHeaderBytes + i * kIdBytes));
    (i < used ? list.used : list.others).push_back(id);
  }
  return list;
}

Result<HotPageList> ReadHotPages(Storage& storage, const std::string& directory) {
  const std::string path = Concat(directory, "/", kHotPagesName);
  const Result<std::string> bytes = ReadFile(storage, path, kHeaderBytes + HotPageList::kMaxPages * kIdBytes);
  // A file beyond the limit is no list of this program.
  if (bytes.status() == ErrorCode::kInvalidArgument) return DEUT_ERROR(kVersionMismatch, bytes.status().message());
  DEUT_RETURN_IF_ERROR(bytes.status());
  return DecodeHotPages(*bytes, path);
}

Status WriteHotPages(Storage& storage, const std::string& directory, const HotPageList& list) {
  const std::string temporary = Concat(directory, "/", kHotPagesTemporaryName);
  Status status = WriteAll(storage, temporary, EncodeHotPages(list));
  if (status.ok()) status = storage.Rename(temporary, Concat(directory, "/", kHotPagesName));
  if (!status.ok()) (void)storage.Remove(temporary);
  return status;
}

}  // namespace deut::dc

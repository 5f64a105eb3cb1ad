// Reads any bytes as a checkpoint. Either it is refused, or it is complete and valid, so that writing the content
// read gives the same file. The bytes are used as the file, as the records of a file whose blocks are sealed around
// them, and as the records behind the head of a file that has an ancestor.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/ids.h"
#include "common/base/status.h"
#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"
#include "common/io/storage.h"
#include "common/runtime/runtime.h"
#include "dc/page_store/checkpoint_file.h"
#include "dc/page_store/checkpoint_fixture.h"
#include "dc/page_store/checkpoint_format.h"
#include "dc/page_store/page_address.h"
#include "dc/page_store/page_id.h"

namespace deut::dc {
namespace {

constexpr CheckpointNumber kNumber{5};
constexpr DcId kDc{0xDC};

std::string ReadAll(Storage& storage) {
  const auto file = storage.Open("/c/" + CheckpointName(kNumber), {});
  DEUT_CHECK(file.ok());
  std::string bytes((*file)->Size().value(), '\0');
  DEUT_CHECK((*file)->Read(0, bytes.data(), bytes.size()).ok());
  return bytes;
}

void Play(const std::string& bytes) {
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  DEUT_CHECK(storage->CreateDirectory("/c").ok());
  {
    const auto file = storage->Open("/c/" + CheckpointName(kNumber), {.create = true, .writable = true});
    DEUT_CHECK(file.ok() && (*file)->Write(0, bytes.data(), bytes.size()).ok());
  }
  CheckpointKeeper keeper;
  const auto counts = ReadCheckpoint(*storage, "/c", kNumber, kDc, &keeper);
  const auto again = ReadCheckpoint(*storage, "/c", kNumber, kDc, nullptr);
  DEUT_CHECK(counts.ok() == again.ok());
  if (!counts.ok()) {
    DEUT_CHECK(counts.status() == ErrorCode::kCorruption || counts.status() == ErrorCode::kVersionMismatch);
    return;
  }
  const auto writer = CheckpointWriter::Create(*storage, "/c", keeper.content.head);
  DEUT_CHECK(writer.ok() && AddAll(**writer, keeper.content).ok() && (*writer)->Finish().ok());
  CheckpointKeeper second;
  DEUT_CHECK(ReadCheckpoint(*storage, "/c", kNumber, kDc, &second).ok() && second.content == keeper.content);
  // One block has only one encoding in a version; several blocks may be filled in other ways.
  const std::string written = ReadAll(*storage);
  if (bytes.size() == kCheckpointBlockBytes && LoadU16(bytes.data() + 8) == LoadU16(written.data() + 8)) {
    DEUT_CHECK(written == bytes);
  }
}

// Makes `count` blocks around these records.
std::string Sealed(std::string_view records, size_t count) {
  std::string file(count * kCheckpointBlockBytes, '\0');
  uint32_t predecessor = 0;
  const size_t each = (records.size() + count - 1) / count;
  for (size_t i = 0; i < count; ++i) {
    const std::string_view part =
        records.substr(std::min(i * each, records.size()), std::min(each, kCheckpointBlockRoom));
    char* block = file.data() + i * kCheckpointBlockBytes;
    std::memcpy(block + kCheckpointBlockHeaderBytes, part.data(), part.size());
    predecessor = SealCheckpointBlock({.checkpoint = kNumber,
                                       .dc = kDc,
                                       .offset = i * kCheckpointBlockBytes,
                                       .predecessor = predecessor,
                                       .last = i + 1 == count,
                                       .payload_bytes = static_cast<uint32_t>(part.size())},
                                      block);
  }
  return file;
}

std::string HeadRecord(PageId next_page, uint64_t next_segment) {
  std::string record(1, '\x01');
  AppendU64(&record, 1);
  for (const uint64_t commit : {100, 0}) {
    AppendU64(&record, commit);
    AppendU32(&record, 5 * (commit != 0));
  }
  AppendU32(&record, next_page.value);
  AppendU64(&record, next_segment);
  return record;
}

// Makes an empty checkpoint with these bytes combined by exclusive or, and the right checksum.
std::string Overlaid(std::string_view bytes) {
  std::string records = HeadRecord(PageId(12), 4);
  records.push_back('\x05');  // a footer with counts of 0
  records.append(3 * sizeof(uint64_t), '\0');
  std::string file = Sealed(records, 1);
  for (size_t i = 0; i < std::min(bytes.size(), file.size()); ++i) file[i] = static_cast<char>(file[i] ^ bytes[i]);
  StoreU32(file.data() + 4, Crc32c(std::string_view(file).substr(8)));
  return file;
}

// Reads these records as those of a checkpoint of one block whose only ancestor is whole.
void PlayWithAncestor(std::string_view bytes) {
  // The checks that a start relies on: no id that it could not use as an index, and no page twice.
  class Checked final : public CheckpointKeeper {
   public:
    Status OnPage(PageId page, std::span<const PageAddress> parts) override {
      DEUT_CHECK(IsPage(page) && !parts.empty() && !content.pages.contains(page));
      return CheckpointKeeper::OnPage(page, parts);
    }
    void OnRecentChange(PageId page) override {
      DEUT_CHECK(IsPage(page) && !content.recent.contains(page));
      CheckpointKeeper::OnRecentChange(page);
    }

   private:
    bool IsPage(PageId page) const { return page.value != 0 && page < content.head.next_page; }
  };
  const std::unique_ptr<Storage> storage = NewMemoryStorage(RealRuntime());
  DEUT_CHECK(storage->CreateDirectory("/c").ok());
  const CheckpointContent content = ContentWith(kNumber.value - 2, 20);
  const auto writer = CheckpointWriter::Create(*storage, "/c", content.head);
  DEUT_CHECK(writer.ok() && AddAll(**writer, content).ok() && (*writer)->Finish().ok());
  const CheckpointAncestor ancestor = (*writer)->AsAncestor();
  std::string records = HeadRecord(content.head.next_page, content.head.next_segment);
  records.append("\x07\x01", 2);
  AppendU64(&records, ancestor.number.value);
  for (const uint32_t field : {ancestor.blocks, ancestor.checksum, ancestor.next_page.value, ancestor.pages.first.value,
                               ancestor.pages.end.value}) {
    AppendU32(&records, field);
  }
  records.append(bytes);
  const std::string file_bytes = Sealed(records, 1);
  const auto file = storage->Open("/c/" + CheckpointName(kNumber), {.create = true, .writable = true});
  DEUT_CHECK(file.ok() && (*file)->Write(0, file_bytes.data(), file_bytes.size()).ok());
  Checked visitor;
  const auto counts = ReadCheckpoint(*storage, "/c", kNumber, kDc, &visitor);
  DEUT_CHECK(counts.ok() || counts.status() == ErrorCode::kCorruption);
  if (!counts.ok()) return;
  DEUT_CHECK(counts->pages == visitor.content.pages.size());
  DEUT_CHECK(visitor.live_bytes == LiveBytesOf(visitor.content));
}

void PlayNames(std::string_view bytes) {
  CheckpointNumber number;
  if (ParseCheckpointName(bytes, &number)) DEUT_CHECK(CheckpointName(number) == bytes);
}

}  // namespace
}  // namespace deut::dc

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 5) {
    case 0:
      deut::dc::Play(std::string(bytes));
      deut::dc::Play(std::string(bytes) + std::string(deut::dc::kCheckpointBlockBytes, '\0'));
      deut::dc::PlayNames(bytes);
      break;
    case 1:
      deut::dc::Play(deut::dc::Sealed(bytes, 2));
      break;
    case 2:
      deut::dc::Play(deut::dc::Overlaid(bytes));
      break;
    case 4:
      deut::dc::PlayWithAncestor(bytes.substr(0, deut::dc::kCheckpointBlockRoom / 2));
      break;
    default:
      deut::dc::Play(deut::dc::Sealed(bytes, 1));
  }
  return 0;
}

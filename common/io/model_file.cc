#include "common/io/model_file.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "common/base/check.h"

namespace deut {

SparseBytes::SparseBytes(const SparseBytes& other) {
  for (const auto& [number, ref] : other.chunks_) {
    ref.shared = true;
    chunks_.emplace_hint(chunks_.end(), number, ref);
  }
}

SparseBytes::Chunk& SparseBytes::MakeUnshared(ChunkRef* ref) {
  if (ref->chunk == nullptr) {
    ref->chunk = std::make_shared<Chunk>();
  } else if (ref->shared) {
    ref->chunk = std::make_shared<Chunk>(*ref->chunk);
  }
  ref->shared = false;
  return *ref->chunk;
}

void SparseBytes::Read(uint64_t offset, char* data, uint64_t bytes) const {
  while (bytes > 0) {
    const uint64_t in_chunk = offset % kChunkBytes;
    const uint64_t part = std::min(bytes, kChunkBytes - in_chunk);
    const auto chunk = chunks_.find(offset / kChunkBytes);
    if (chunk == chunks_.end()) {
      std::memset(data, 0, part);
    } else {
      std::memcpy(data, chunk->second.chunk->data() + in_chunk, part);
    }
    offset += part;
    data += part;
    bytes -= part;
  }
}

void SparseBytes::Write(uint64_t offset, const char* data, uint64_t bytes) {
  while (bytes > 0) {
    const uint64_t in_chunk = offset % kChunkBytes;
    const uint64_t part = std::min(bytes, kChunkBytes - in_chunk);
    std::memcpy(MakeUnshared(&chunks_[offset / kChunkBytes]).data() + in_chunk, data, part);
    offset += part;
    data += part;
    bytes -= part;
  }
}

void SparseBytes::Zero(uint64_t offset, uint64_t bytes) {
  const uint64_t end = offset + bytes;
  for (auto chunk = chunks_.lower_bound(offset / kChunkBytes); chunk != chunks_.end();) {
    const uint64_t start = chunk->first * kChunkBytes;
    if (start >= end) break;
    const uint64_t from = std::max(offset, start), to = std::min(end, start + kChunkBytes);
    if (to - from == kChunkBytes) {
      chunk = chunks_.erase(chunk);
      continue;
    }
    std::memset(MakeUnshared(&chunk->second).data() + (from - start), 0, to - from);
    ++chunk;
  }
}

uint64_t ModelFile::Read(uint64_t offset, char* data, uint64_t bytes) const {
  if (offset >= size_) return 0;
  bytes = std::min(bytes, size_ - offset);
  bytes_.Read(offset, data, bytes);
  return bytes;
}

void ModelFile::KeepOldSectors(uint64_t offset, uint64_t bytes, uint64_t number) {
  if (!models_crashes_ || bytes == 0) return;
  for (uint64_t at = offset / kSectorBytes; at <= (offset + bytes - 1) / kSectorBytes; ++at) {
    Sector& sector = uncovered_[at];
    // Without requests in flight only the durable version is needed. With some, every version is kept that a
    // completion may yet cover.
    if (sector.older.empty() || !in_flight_.empty() || syncs_in_flight_ > 0) {
      Version& version = sector.older.emplace_back();
      version.number = sector.number;
      version.abandoned = sector.abandoned;
      bytes_.Read(at * kSectorBytes, version.bytes.data(), kSectorBytes);
    }
    sector.number = number;
    sector.abandoned = false;
  }
}

uint64_t ModelFile::BeginWrite(uint64_t offset, const char* data, uint64_t bytes) {
  const uint64_t number = ++last_number_;
  KeepOldSectors(offset, bytes, number);
  bytes_.Write(offset, data, bytes);
  size_ = std::max(size_, offset + bytes);
  if (models_crashes_) in_flight_.push_back({number, offset, bytes});
  return number;
}

ModelFile::Write ModelFile::TakeInFlight(uint64_t number) {
  const auto found =
      std::find_if(in_flight_.begin(), in_flight_.end(), [&](const Write& w) { return w.number == number; });
  DEUT_CHECK(found != in_flight_.end());
  const Write write = *found;
  in_flight_.erase(found);
  return write;
}

bool ModelFile::Cover(Sector* sector, uint64_t last, const std::vector<uint64_t>& except) {
  const auto covered = [&](uint64_t number) {
    return number <= last && std::find(except.begin(), except.end(), number) == except.end();
  };
  if (!sector->abandoned && covered(sector->number)) return true;
  // Searches from the newest version down and drops the versions older than the covered one, so that it becomes the
  // first, the durable one.
  for (size_t i = sector->older.size(); i-- > 1;) {
    if (sector->older[i].abandoned || !covered(sector->older[i].number)) continue;
    sector->older.erase(sector->older.begin(), std::next(sector->older.begin(), static_cast<ptrdiff_t>(i)));
    break;
  }
  return false;
}

void ModelFile::CompleteWrite(uint64_t number, bool covers) {
  if (!models_crashes_) return;
  const Write write = TakeInFlight(number);
  if (!covers || write.bytes == 0) return;
  const uint64_t end = (write.offset + write.bytes - 1) / kSectorBytes;
  for (auto entry = uncovered_.lower_bound(write.offset / kSectorBytes);
       entry != uncovered_.end() && entry->first <= end;) {
    entry = Cover(&entry->second, number, {}) ? uncovered_.erase(entry) : std::next(entry);
  }
  durable_size_ = std::max(durable_size_, std::min(size_, write.offset + write.bytes));
}

void ModelFile::AbandonWrite(uint64_t number) {
  if (!models_crashes_) return;
  const Write write = TakeInFlight(number);
  if (write.bytes == 0) return;
  for (uint64_t at = write.offset / kSectorBytes; at <= (write.offset + write.bytes - 1) / kSectorBytes; ++at) {
    const auto entry = uncovered_.find(at);
    if (entry != uncovered_.end() && entry->second.number == number) entry->second.abandoned = true;
  }
}

ModelFile::SyncTicket ModelFile::BeginSync() {
  ++syncs_in_flight_;
  SyncTicket ticket{.last_write = last_number_, .in_flight = {}, .size = size_, .durable_size = durable_size_};
  for (const Write& write : in_flight_) ticket.in_flight.push_back(write.number);
  return ticket;
}

void ModelFile::EndSync(const SyncTicket& ticket, SyncEnd end) {
  DEUT_CHECK(syncs_in_flight_ > 0);
  --syncs_in_flight_;
  if (end == SyncEnd::kFails) {
    for (auto& [at, sector] : uncovered_) {
      if (sector.number <= ticket.last_write) sector.abandoned = true;
    }
  }
  if (end != SyncEnd::kCovers) return;
  for (auto entry = uncovered_.begin(); entry != uncovered_.end();) {
    entry = Cover(&entry->second, ticket.last_write, ticket.in_flight) ? uncovered_.erase(entry) : std::next(entry);
  }
  // A synchronous write may have made a larger size durable meanwhile.
  durable_size_ = durable_size_ == ticket.durable_size ? ticket.size : std::max(durable_size_, ticket.size);
}

void ModelFile::Resize(uint64_t bytes) {
  if (bytes < size_) {
    KeepOldSectors(bytes, size_ - bytes, ++last_number_);
    bytes_.Zero(bytes, size_ - bytes);
  }
  size_ = bytes;
}

void ModelFile::FlipBit(uint64_t offset, int bit) {
  const auto mask = static_cast<char>(1 << bit);
  char byte;
  bytes_.Read(offset, &byte, 1);
  byte = static_cast<char>(byte ^ mask);
  bytes_.Write(offset, &byte, 1);
  const auto entry = uncovered_.find(offset / kSectorBytes);
  if (entry == uncovered_.end()) return;
  for (Version& version : entry->second.older) {
    char& old = version.bytes[offset % kSectorBytes];
    old = static_cast<char>(old ^ mask);
  }
}

void ModelFile::Crash(Random* random, uint32_t keep_in_1024) {
  const auto keeps = [&] { return random->Below(1024) < keep_in_1024; };
  if (size_ != durable_size_) {
    const uint64_t low = std::min(size_, durable_size_), high = std::max(size_, durable_size_);
    if (!keeps()) {
      size_ = durable_size_;
    } else if (random->OneIn(3)) {
      size_ = random->Between(low, high);
    }
  }
  for (const auto& [at, sector] : uncovered_) {
    if (keeps()) continue;
    const Version& version = sector.older[random->OneIn(2) ? 0 : random->Below(sector.older.size())];
    bytes_.Write(at * kSectorBytes, version.bytes.data(), kSectorBytes);
  }
  bytes_.Zero(size_, UINT64_MAX - size_);
  durable_size_ = size_;
  uncovered_.clear();
  in_flight_.clear();
  syncs_in_flight_ = 0;
}

}  // namespace deut

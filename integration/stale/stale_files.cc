#include "integration/stale/stale_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/coding/crc32c.h"
#include "common/coding/fixed.h"

namespace deut::stale {
namespace {

namespace fs = std::filesystem;

constexpr uint16_t kLaterVersion = 40;
constexpr size_t kFirstBlock = 4096;

std::string BytesOfFile(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(in)), {});
}

void WriteFile(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// Returns the files of a folder whose names begin with `prefix`, in order.
std::vector<fs::path> FilesIn(const fs::path& folder, std::string_view prefix) {
  std::vector<fs::path> files;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(folder, missing)) {
    if (entry.path().filename().string().starts_with(prefix)) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

// Returns a TC's segments that hold blocks, or those that do not: spare segments lie behind the others.
std::vector<fs::path> Logs(const std::string& folder, bool used) {
  std::vector<fs::path> files = FilesIn(folder, "log-");
  std::erase_if(files, [used](const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    char magic[4] = {};
    in.read(magic, sizeof(magic));
    return (LoadU32(magic) != 0) != used;
  });
  return files;
}

std::optional<fs::path> At(const std::vector<fs::path>& files, bool first) {
  if (files.empty()) return std::nullopt;
  return first ? files.front() : files.back();
}

// Version and checksum of each format are at the same place in every version (protocol/docs/versions.md).
void ChangeVersion(const fs::path& path) {
  std::string bytes = BytesOfFile(path);
  StoreU16(bytes.data() + 8, kLaterVersion);
  const std::string name = path.filename().string();
  if (name.starts_with("checkpoint-")) {
    constexpr size_t kBlock = 64 << 10;
    StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8, kBlock - 8)));
  } else if (name.starts_with("log-")) {
    StoreU32(bytes.data() + 4, Crc32c(std::string_view(bytes).substr(8, kFirstBlock - 8)));
  } else if (name.ends_with(".seg")) {
    StoreU32(bytes.data() + 12, 0);
    StoreU32(bytes.data() + 12, Crc32c(std::string_view(bytes).substr(0, kFirstBlock)));
  } else {  // OWNER and dc_state: at the end
    bytes.resize(bytes.size() - 4);
    AppendU32(&bytes, Crc32c(bytes));
  }
  WriteFile(path, bytes);
}

// A spare segment has no first block of its own, so it gets that of the oldest segment.
void MakeSpareOfOtherVersion(const std::string& folder, const fs::path& spare) {
  const std::string block = BytesOfFile(Logs(folder, /*used=*/true).front()).substr(0, kFirstBlock);
  WriteFile(spare, block + BytesOfFile(spare).substr(kFirstBlock));
  ChangeVersion(spare);
}

}  // namespace

std::vector<FileKind> FileKindsOf(Component component) {
  if (component == Component::kTc)
    return {FileKind::kOwner, FileKind::kOldestLog, FileKind::kMiddleLog, FileKind::kNewestLog, FileKind::kSpareLog};
  return {FileKind::kOwner,
          FileKind::kState,
          FileKind::kNewestCheckpoint,
          FileKind::kOldestCheckpoint,
          FileKind::kFirstBaseSegment,
          FileKind::kLastBaseSegment,
          FileKind::kFirstDeltaSegment,
          FileKind::kLastDeltaSegment};
}

const char* NameOf(FileKind kind) {
  switch (kind) {
    case FileKind::kOwner:
      return "Owner";
    case FileKind::kState:
      return "State";
    case FileKind::kNewestCheckpoint:
      return "NewestCheckpoint";
    case FileKind::kOldestCheckpoint:
      return "OldestCheckpoint";
    case FileKind::kFirstBaseSegment:
      return "FirstBaseSegment";
    case FileKind::kLastBaseSegment:
      return "LastBaseSegment";
    case FileKind::kFirstDeltaSegment:
      return "FirstDeltaSegment";
    case FileKind::kLastDeltaSegment:
      return "LastDeltaSegment";
    case FileKind::kOldestLog:
      return "OldestLog";
    case FileKind::kMiddleLog:
      return "MiddleLog";
    case FileKind::kNewestLog:
      return "NewestLog";
    case FileKind::kSpareLog:
      return "SpareLog";
  }
  return "";
}

const char* NameOf(FileChange change) {
  switch (change) {
    case FileChange::kMissing:
      return "Missing";
    case FileChange::kTruncated:
      return "Truncated";
    case FileChange::kZeroed:
      return "Zeroed";
    case FileChange::kOtherVersion:
      return "OfOtherVersion";
    case FileChange::kOlder:
      return "Older";
    case FileChange::kForeign:
      return "Foreign";
  }
  return "";
}

std::optional<fs::path> FindFile(const std::string& folder, FileKind kind) {
  const fs::path root(folder);
  const fs::path pages = root / "pages";
  switch (kind) {
    case FileKind::kOwner:
      return At(FilesIn(root, "OWNER"), true);
    case FileKind::kState:
      return At(FilesIn(root, "dc_state"), true);
    case FileKind::kNewestCheckpoint:
      return At(FilesIn(pages, "checkpoint-"), false);
    case FileKind::kOldestCheckpoint:
      return At(FilesIn(pages, "checkpoint-"), true);
    case FileKind::kFirstBaseSegment:
      return At(FilesIn(pages, "base-"), true);
    case FileKind::kLastBaseSegment:
      return At(FilesIn(pages, "base-"), false);
    case FileKind::kFirstDeltaSegment:
      return At(FilesIn(pages, "delta-"), true);
    case FileKind::kLastDeltaSegment:
      return At(FilesIn(pages, "delta-"), false);
    case FileKind::kOldestLog:
      return At(Logs(folder, true), true);
    case FileKind::kNewestLog:
      return At(Logs(folder, true), false);
    case FileKind::kMiddleLog: {
      const std::vector<fs::path> logs = Logs(folder, true);
      return logs.size() < 3 ? std::nullopt : std::optional<fs::path>(logs[logs.size() / 2]);
    }
    case FileKind::kSpareLog:
      return At(Logs(folder, false), false);
  }
  return std::nullopt;
}

bool ChangeFile(const std::string& folder, FileKind kind, FileChange change, const std::string& source) {
  const std::optional<fs::path> file = FindFile(folder, kind);
  if (!file) return false;
  switch (change) {
    case FileChange::kMissing:
      return fs::remove(*file);
    case FileChange::kTruncated:
      fs::resize_file(*file, fs::file_size(*file) / 2);
      return true;
    case FileChange::kZeroed: {
      std::string bytes = BytesOfFile(*file);
      std::fill_n(bytes.begin(), std::min(kFirstBlock, bytes.size()), '\0');
      WriteFile(*file, bytes);
      return true;
    }
    case FileChange::kOtherVersion:
      if (kind == FileKind::kSpareLog) {
        MakeSpareOfOtherVersion(folder, *file);
      } else {
        ChangeVersion(*file);
      }
      return true;
    case FileChange::kOlder:
    case FileChange::kForeign: {
      const std::optional<fs::path> other = FindFile(source, kind);
      if (!other) return false;
      fs::copy_file(*other, *file, fs::copy_options::overwrite_existing);
      return true;
    }
  }
  return false;
}

}  // namespace deut::stale

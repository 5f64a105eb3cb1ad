// Any bytes as a journal are either refused, or read as figures that agree with each other. Each input runs twice:
// unchanged, and with the right checksum behind every line, so that the parser reaches the content of the lines.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>

#include "common/base/check.h"
#include "common/base/status.h"
#include "common/testing/temp_dir.h"
#include "integration/ycsb/journal.h"
#include "integration/ycsb/journal_reader.h"

namespace deut::ycsb {
namespace {

void Play(std::string_view bytes) {
  static const testing::TempDir directory;
  static const std::string path = directory.path() + "/journal";
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  const Result<JournalContents> contents = ReadJournal(path);
  if (!contents.ok()) {
    DEUT_CHECK(!contents.status().message().empty());
    return;
  }
  uint64_t unknown = 0, acknowledged = 0;
  for (const auto& [number, record] : contents->records) {
    unknown += record.unknown.size();
    acknowledged += record.acknowledged_writes;
    DEUT_CHECK(record.acknowledged == (record.acknowledged_writes != 0));
    if (record.acknowledged) DEUT_CHECK(record.Allows(record.newest));
  }
  DEUT_CHECK(unknown == contents->unknown && acknowledged == contents->acknowledged);
  DEUT_CHECK(contents->run_acknowledged <= contents->acknowledged);
}

// Takes each line up to its last blank as a body, and adds its checksum. It omits writes of very many records, which
// the format allows, because they would take all the time.
std::string WithChecksums(std::string_view bytes) {
  std::string fixed;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    const std::string_view body = line.substr(0, line.rfind(' '));
    size_t blanks = 0, at = 0;
    while (at < body.size() && blanks < 4) blanks += body[at++] == ' ' ? 1 : 0;
    if (blanks == 4 && std::strtoull(std::string(body.substr(at)).c_str(), nullptr, 10) > 1000) continue;
    fixed += JournalLine(body);
  }
  return fixed;
}

}  // namespace
}  // namespace deut::ycsb

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  deut::ycsb::Play(bytes);
  deut::ycsb::Play(deut::ycsb::WithChecksums(bytes));
  return 0;
}

#include "integration/ycsb/journal_reader.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "integration/ycsb/journal.h"

namespace deut::ycsb {
namespace {

// Maximum count of a write in a line; more than the load phase ever puts into one transaction.
constexpr uint32_t kMaxCount = 1 << 20;

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t space = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, space));
    text.remove_prefix(std::min(space + 1, text.size()));
  }
  return words;
}

template <typename Number>
bool ParseNumber(std::string_view text, Number* number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return error == std::errc() && end == text.data() + text.size();
}

class Reader {
 public:
  // Returns false if the line is not a line of a journal (torn, damaged).
  bool Line(std::string_view line, Status* status);
  // Called after the last line. Counts the writes without an answer as unknown.
  void Finish();

  JournalContents contents;

 private:
  bool Write(const std::vector<std::string_view>& words, JournalWrite* write) const;
  // Removes the write from `open_`.
  Status Answered(const JournalWrite& write);
  Status Acknowledged(const JournalWrite& write, Timestamp timestamp, int64_t wall_us);

  bool in_run_ = false;
  // Writes without an answer so far, by the id of their first write.
  std::map<std::pair<uint64_t, uint32_t>, JournalWrite> open_;
};

bool Reader::Write(const std::vector<std::string_view>& words, JournalWrite* write) const {
  return ParseNumber(words[1], &write->first.writer) && ParseNumber(words[2], &write->first.sequence) &&
         ParseNumber(words[3], &write->number) && ParseNumber(words[4], &write->count) && write->count >= 1 &&
         write->count <= kMaxCount;
}

bool Reader::Line(std::string_view line, Status* status) {
  const size_t space = line.rfind(' ');
  if (space == std::string_view::npos) return false;
  const std::string_view body = line.substr(0, space);
  if (JournalLine(body).compare(0, std::string::npos, std::string(line) + "\n") != 0) return false;
  std::vector<std::string_view> words = Words(body);
  if (words.empty()) words.emplace_back();  // a body without a word
  JournalWrite write;
  if (words[0] == "S" && words.size() == 3) {
    if (words[1] != "1")
      *status =
          DEUT_ERROR(kVersionMismatch, "the journal has version ", std::string(words[1]), ", this program reads 1");
    ++contents.processes;
    in_run_ = false;
  } else if (words[0] == "P" && words.size() == 3) {
    in_run_ = words[1] == "run";
  } else if (words[0] == "T" && words.size() == 5 && Write(words, &write)) {
    if (!open_.try_emplace({write.first.writer, write.first.sequence}, write).second) {
      *status = DEUT_ERROR(kCorruption, "the write is tried twice");
    }
    contents.writers.insert(write.first.writer);
    for (uint32_t i = 0; i < write.count; ++i) contents.records.try_emplace(write.number + i);
  } else if (words[0] == "F" && words.size() == 5 && Write(words, &write)) {
    *status = Answered(write);
  } else if (words[0] == "A" && words.size() == 7 && Write(words, &write)) {
    uint64_t timestamp = 0;
    int64_t wall_us = 0;
    if (!ParseNumber(words[5], &timestamp) || !ParseNumber(words[6], &wall_us)) {
      *status = DEUT_ERROR(kCorruption, "no numbers where timestamp and time should be");
    } else {
      *status = Acknowledged(write, Timestamp(timestamp), wall_us);
    }
  } else {
    *status = DEUT_ERROR(kCorruption, "the checksum is right but the line says nothing that is known");
  }
  return true;
}

Status Reader::Answered(const JournalWrite& write) {
  const auto tried = open_.find({write.first.writer, write.first.sequence});
  if (tried == open_.end() || tried->second.number != write.number || tried->second.count != write.count) {
    return DEUT_ERROR(kCorruption, "a write is answered that was not tried");
  }
  open_.erase(tried);
  return Status();
}

Status Reader::Acknowledged(const JournalWrite& write, Timestamp timestamp, int64_t wall_us) {
  DEUT_RETURN_IF_ERROR(Answered(write));
  for (uint32_t i = 0; i < write.count; ++i) {
    RecordHistory& record = contents.records[write.number + i];
    ++record.acknowledged_writes;
    if (record.acknowledged && timestamp <= record.timestamp) {
      if (timestamp == record.timestamp)
        return DEUT_ERROR(kCorruption, "two writes of record ", write.number + i, " share a commit timestamp");
      continue;
    }
    record.acknowledged = true;
    record.newest = {.writer = write.first.writer, .sequence = write.first.sequence + i};
    record.timestamp = timestamp;
  }
  contents.acknowledged += write.count;
  if (!in_run_) return Status();
  contents.run_acknowledged += write.count;
  if (contents.first_run_ack_us == 0 || wall_us < contents.first_run_ack_us) contents.first_run_ack_us = wall_us;
  contents.last_run_ack_us = std::max(contents.last_run_ack_us, wall_us);
  return Status();
}

void Reader::Finish() {
  for (const auto& [id, write] : open_) {
    for (uint32_t i = 0; i < write.count; ++i) {
      contents.records[write.number + i].unknown.push_back(
          {.writer = write.first.writer, .sequence = write.first.sequence + i});
    }
    contents.unknown += write.count;
  }
}

}  // namespace

bool RecordHistory::Allows(const WriteId& id) const {
  return (acknowledged && id == newest) || std::find(unknown.begin(), unknown.end(), id) != unknown.end();
}

Result<JournalContents> ReadJournal(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return DEUT_ERROR(kIoError, "cannot open the journal ", path, ": ", std::strerror(errno));
  Reader reader;
  std::string line;
  bool damaged = false;  // the previous line was damaged
  for (uint64_t number = 1; std::getline(file, line); ++number) {
    Status status;
    if (file.eof() || !reader.Line(line, &status)) {  // at the end of the file: the line has no newline, so it is torn
      if (damaged) return DEUT_ERROR(kCorruption, path, ", line ", number, ": damaged, as is the one before");
      damaged = true;
      ++reader.contents.torn_lines;
      continue;
    }
    if (damaged && !line.starts_with("S ")) {
      return DEUT_ERROR(kCorruption, path, ", line ", number - 1, ": damaged, and no new process follows");
    }
    damaged = false;
    if (!status.ok()) return DEUT_ERROR(kCorruption, path, ", line ", number, ": ", status.message());
  }
  if (file.bad()) return DEUT_ERROR(kIoError, "cannot read the journal ", path);
  if (reader.contents.processes == 0) return DEUT_ERROR(kCorruption, path, ": no journal (no line of it begins one)");
  reader.Finish();
  return std::move(reader.contents);
}

}  // namespace deut::ycsb

#include "integration/scenarios/scenario_file.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <utility>

#include "common/base/concat.h"
#include "common/config/units.h"
#include "integration/history/workloads.h"

namespace deut::scenarios {
namespace {

using testing::End;

constexpr Duration kLongest = seconds(600);

// The words of one line, each with its column.
class Line {
 public:
  Line(std::string_view file, size_t number, std::string_view text) : file_(file), number_(number), text_(text) {
    SkipBlanks();
  }

  bool AtEnd() const { return at_ == text_.size(); }
  size_t at() const { return at_; }
  std::string_view text() const { return text_; }

  // Returns the text up to a blank, a comma, or the end.
  std::string_view Peek() const {
    size_t end = at_;
    while (end < text_.size() && text_[end] != ' ' && text_[end] != ',') ++end;
    return text_.substr(at_, end - at_);
  }
  std::string_view NextWord() {
    const std::string_view word = Peek();
    at_ += word.size();
    SkipBlanks();
    return word;
  }
  bool ConsumeWord(std::string_view word) {
    if (Peek() != word) return false;
    NextWord();
    return true;
  }
  bool ConsumeComma() {
    if (AtEnd() || text_[at_] != ',') return false;
    ++at_;
    SkipBlanks();
    return true;
  }

  Status Expected(std::string_view what) const {
    const std::string_view found = Peek();
    return DEUT_ERROR(kInvalidArgument, file_, ":", number_, ":", at_ + 1, ": ", what, " is expected, not ",
                      AtEnd()         ? std::string("the end of the line")
                      : found.empty() ? std::string("a comma")
                                      : Concat("\"", found, "\""));
  }

  Result<uint64_t> Number(std::string_view what, uint64_t low, uint64_t high) {
    return ParseNumber(Peek(), what, low, high);
  }
  Result<CountRange> Counts(std::string_view what, uint64_t low, uint64_t high) {
    const auto [first, second] = Halves();
    DEUT_ASSIGN_OR_RETURN(const uint64_t least, Parse(first, what, low, high));
    DEUT_ASSIGN_OR_RETURN(const uint64_t most, Parse(second, what, least, high));
    NextWord();
    return CountRange{least, most};
  }
  Result<Duration> Time() {
    Result<Duration> time = ParseDuration(Peek());
    if (!time.ok() || time->count() < 0 || *time > kLongest) return Expected("a duration up to 600s");
    NextWord();
    return time;
  }
  Result<DurationRange> Times() {
    const auto [first, second] = Halves();
    const Result<Duration> least = ParseDuration(first), most = ParseDuration(second);
    if (!least.ok() || !most.ok() || least->count() < 0 || *least > *most || *most > kLongest) {
      return Expected("a duration up to 600s, or two with \"..\" between");
    }
    NextWord();
    return DurationRange{*least, *most};
  }
  Result<uint64_t> Bytes() {
    Result<uint64_t> bytes = ParseBytes(Peek());
    if (!bytes.ok() || *bytes == 0) return Expected("an amount of bytes");
    NextWord();
    return bytes;
  }

 private:
  void SkipBlanks() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  std::pair<std::string_view, std::string_view> Halves() const {
    const std::string_view word = Peek();
    const size_t dots = word.find("..");
    if (dots == std::string_view::npos) return {word, word};
    return {word.substr(0, dots), word.substr(dots + 2)};
  }
  Result<uint64_t> Parse(std::string_view text, std::string_view what, uint64_t low, uint64_t high) const {
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size() || number < low || number > high) {
      return Expected(Concat(what, " from ", low, " to ", high));
    }
    return number;
  }
  Result<uint64_t> ParseNumber(std::string_view text, std::string_view what, uint64_t low, uint64_t high) {
    DEUT_ASSIGN_OR_RETURN(const uint64_t number, Parse(text, what, low, high));
    NextWord();
    return number;
  }

  const std::string_view file_;
  const size_t number_;
  const std::string_view text_;
  size_t at_ = 0;
};

Status ParseDaemons(Line& line, bool* tc, bool* dc) {
  const bool both = line.ConsumeWord("both");
  *tc = both || line.ConsumeWord("tc");
  *dc = both || (!*tc && line.ConsumeWord("dc"));
  return *tc || *dc ? Status() : line.Expected("tc, dc or both");
}

Status ParseLinks(Line& line, Fault* fault) {
  const bool both = line.ConsumeWord("both");
  fault->client_tc = both || line.ConsumeWord("client_tc");
  fault->tc_dc = both || (!fault->client_tc && line.ConsumeWord("tc_dc"));
  return fault->on_links() ? Status() : line.Expected("client_tc, tc_dc or both");
}

void ParseFlows(Line& line, Fault* fault) {
  if (line.ConsumeWord("to_server")) {
    fault->to_client = false;
  } else if (line.ConsumeWord("to_client")) {
    fault->to_server = false;
  }
}

Status ParseStay(Line& line, Fault* fault) {
  if (!line.ConsumeWord("for")) return line.Expected("\"for\" and a duration");
  DEUT_ASSIGN_OR_RETURN(fault->stay, line.Times());
  return Status();
}

Status ParseLinkFault(Line& line, Fault* fault, bool stays) {
  DEUT_RETURN_IF_ERROR(ParseLinks(line, fault));
  if (fault->kind == FaultKind::kDelay) {
    DEUT_ASSIGN_OR_RETURN(fault->delay, line.Time());
  } else if (fault->kind == FaultKind::kBandwidth) {
    DEUT_ASSIGN_OR_RETURN(fault->bytes_per_second, line.Bytes());
  } else if (fault->kind == FaultKind::kHalfOpen) {
    if (!line.ConsumeWord("told")) return line.Expected("\"told\"");
    const bool server = line.ConsumeWord("server");
    if (!server && !line.ConsumeWord("client")) return line.Expected("client or server");
    fault->told = server ? End::kServer : End::kClient;
    return Status();
  }
  if (fault->kind == FaultKind::kReset) return Status();
  if (fault->kind != FaultKind::kPartition) ParseFlows(line, fault);
  return stays ? ParseStay(line, fault) : Status();
}

struct Known {
  const char* word;
  FaultKind kind;
};
constexpr Known kKinds[] = {
    {"kill", FaultKind::kKill},           {"storm", FaultKind::kStorm},         {"freeze", FaultKind::kFreeze},
    {"delay", FaultKind::kDelay},         {"bandwidth", FaultKind::kBandwidth}, {"drop", FaultKind::kDrop},
    {"partition", FaultKind::kPartition}, {"reset", FaultKind::kReset},         {"half_open", FaultKind::kHalfOpen},
    {"replay", FaultKind::kReplay},       {"disk_full", FaultKind::kDiskFull},  {"drop_caches", FaultKind::kDropCaches},
};

Result<Fault> ParseFault(Line& line, bool always) {
  Fault fault;
  const size_t begin = line.at();
  const auto* const known = std::ranges::find_if(kKinds, [&](const Known& k) { return line.Peek() == k.word; });
  const bool fits = known != std::end(kKinds) &&
                    (!always || known->kind == FaultKind::kDelay || known->kind == FaultKind::kBandwidth);
  if (!fits) return line.Expected(always ? "delay or bandwidth" : "a fault");
  fault.kind = known->kind;
  line.NextWord();
  switch (fault.kind) {
    case FaultKind::kKill:
    case FaultKind::kFreeze:
      DEUT_RETURN_IF_ERROR(ParseDaemons(line, &fault.tc, &fault.dc));
      DEUT_RETURN_IF_ERROR(ParseStay(line, &fault));
      break;
    case FaultKind::kStorm: {
      DEUT_RETURN_IF_ERROR(ParseDaemons(line, &fault.tc, &fault.dc));
      DEUT_ASSIGN_OR_RETURN(fault.times, line.Counts("a number", 1, 100));
      if (!line.ConsumeWord("times")) return line.Expected("\"times\"");
      DEUT_RETURN_IF_ERROR(ParseStay(line, &fault));
      break;
    }
    case FaultKind::kReplay:
      if (line.ConsumeWord("live")) {
        fault.which = Which::kLive;
      } else if (line.ConsumeWord("old")) {
        fault.which = Which::kOld;
      } else if (!line.ConsumeWord("any")) {
        return line.Expected("live, old or any");
      }
      break;
    case FaultKind::kDropCaches:
    case FaultKind::kDiskFull:
      break;
    default:
      DEUT_RETURN_IF_ERROR(ParseLinkFault(line, &fault, !always));
  }
  std::string_view text = line.text().substr(begin, line.at() - begin);
  while (text.ends_with(' ')) text.remove_suffix(1);
  fault.text = text;
  return fault;
}

Status ParseWorkloads(Line& line, Scenario* scenario) {
  const std::vector<std::string> names = history::WorkloadNames();
  if (line.ConsumeWord("any")) {
    scenario->workloads = names;
    return Status();
  }
  do {
    if (std::ranges::find(names, line.Peek()) == names.end()) return line.Expected("a workload or \"any\"");
    scenario->workloads.emplace_back(line.NextWord());
  } while (!line.AtEnd());
  return Status();
}

Status ParseFlags(Line& line, std::vector<std::string>* flags) {
  do {
    if (!line.Peek().starts_with("--")) return line.Expected("a flag");
    flags->emplace_back(line.NextWord());
  } while (!line.AtEnd());
  return Status();
}

Status ParseFaults(Line& line, Scenario* scenario) {
  FaultSequence sequence;
  do {
    DEUT_ASSIGN_OR_RETURN(Fault fault, ParseFault(line, false));
    sequence.push_back(std::move(fault));
  } while (line.ConsumeComma());
  scenario->faults.push_back(std::move(sequence));
  return Status();
}

template <typename Value>
Status Set(Value* value, Result<Value> result) {
  DEUT_ASSIGN_OR_RETURN(*value, std::move(result));
  return Status();
}

Status ParseSetting(Line& line, Scenario* scenario) {
  if (line.ConsumeWord("workload")) return ParseWorkloads(line, scenario);
  if (line.ConsumeWord("fault")) return ParseFaults(line, scenario);
  if (line.ConsumeWord("tc")) return ParseFlags(line, &scenario->tc_flags);
  if (line.ConsumeWord("dc")) return ParseFlags(line, &scenario->dc_flags);
  if (line.ConsumeWord("slice")) return Set(&scenario->slice, line.Times());
  if (line.ConsumeWord("faults")) return Set(&scenario->faults_per_cycle, line.Counts("a number", 0, 100));
  if (line.ConsumeWord("history")) return Set(&scenario->history, line.Number("a number of cycles", 1, 1'000'000));
  if (line.ConsumeWord("cluster")) return Set(&scenario->cluster, line.Number("a number of cycles", 1, 1'000'000));
  if (line.ConsumeWord("timeout")) return Set(&scenario->timeout, line.Time());
  if (line.ConsumeWord("stall")) return Set(&scenario->stall, line.Time());
  if (line.ConsumeWord("small_disk")) return Set(&scenario->small_disk, line.Bytes());
  if (line.ConsumeWord("always")) {
    DEUT_ASSIGN_OR_RETURN(Fault fault, ParseFault(line, true));
    scenario->always.push_back(std::move(fault));
    return Status();
  }
  if (line.ConsumeWord("threads")) {
    DEUT_ASSIGN_OR_RETURN(const uint64_t threads, line.Number("a number of threads", 1, 256));
    scenario->threads = static_cast<uint32_t>(threads);
    return Status();
  }
  if (line.ConsumeWord("clients")) {
    DEUT_ASSIGN_OR_RETURN(const uint64_t clients, line.Number("a number of clients", 1, 64));
    scenario->clients = static_cast<uint32_t>(clients);
    return Status();
  }
  if (line.ConsumeWord("durability")) {
    const bool buffered = line.ConsumeWord("buffered");
    if (!buffered && !line.ConsumeWord("durable")) return line.Expected("durable or buffered");
    scenario->durability = buffered ? Durability::kBuffered : Durability::kDurable;
    return Status();
  }
  return line.Expected("a setting");
}

// Checks conditions that concern more than one line.
Status CheckWhole(const Scenario& scenario) {
  const auto wrong = [&](auto... why) { return DEUT_ERROR(kInvalidArgument, scenario.name, ": ", why...); };
  if (scenario.workloads.empty()) return wrong("there is no line with \"workload\"");
  if (scenario.faults.empty() && scenario.faults_per_cycle.high > 0 && scenario.always.empty()) {
    return wrong("there is no line with \"fault\"");
  }
  for (const FaultSequence& sequence : scenario.faults) {
    for (const Fault& fault : sequence) {
      if (fault.kind == FaultKind::kDiskFull && scenario.small_disk == 0) return wrong("disk_full needs small_disk");
      const bool kills_tc = (fault.kind == FaultKind::kKill || fault.kind == FaultKind::kStorm) && fault.tc;
      if (kills_tc && scenario.durability == Durability::kBuffered) {
        return wrong("a buffered commit may be lost with the TC, which the checkers do not allow for");
      }
    }
  }
  return Status();
}

}  // namespace

Result<Scenario> ParseScenario(std::string name, std::string_view text) {
  Scenario scenario;
  scenario.name = std::move(name);
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    Line line(scenario.name, number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.AtEnd() || line.Peek().starts_with('#')) continue;
    DEUT_RETURN_IF_ERROR(ParseSetting(line, &scenario));
    if (!line.AtEnd()) return line.Expected("the end of the line");
  }
  DEUT_RETURN_IF_ERROR(CheckWhole(scenario));
  return scenario;
}

Result<Scenario> ReadScenario(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return DEUT_ERROR(kNotFound, "cannot read ", path);
  return ParseScenario(std::filesystem::path(path).stem().string(), text.str());
}

}  // namespace deut::scenarios

#include "integration/bench/tpcc/tpcc_random.h"

#include <algorithm>
#include <string_view>

namespace deut::bench::tpcc {

std::string TpccRandom::NameOf(uint32_t number) {
  constexpr std::string_view kSyllables[] = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                             "ESE", "ANTI",  "CALLY", "ATION", "EING"};
  return Concat(kSyllables[number / 100 % 10], kSyllables[number / 10 % 10], kSyllables[number % 10]);
}

void TpccRandom::FillText(char* field, size_t size, size_t least) {
  constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const size_t length = random_.Between(least, size);
  for (size_t i = 0; i < size; ++i) field[i] = i < length ? kLetters[random_.Below(kLetters.size())] : ' ';
}

void TpccRandom::FillAddress(Address* address) {
  Text(address->street_1, 10);
  Text(address->street_2, 10);
  Text(address->city, 10);
  Text(address->state);
  Digits(address->zip);
  constexpr std::string_view kZip = "11111";
  std::copy(kZip.begin(), kZip.end(), address->zip + 4);
}

void TpccRandom::Data(char (&field)[50]) {
  Text(field, 26);
  if (!Percent(10)) return;
  constexpr std::string_view kOriginal = "ORIGINAL";
  std::copy(kOriginal.begin(), kOriginal.end(), field + random_.Below(26 - kOriginal.size()));
}

}  // namespace deut::bench::tpcc

// StateFile: what a DC has to know about itself before anything else: who it is, which life this is, which TC it obeys, and which checkpoints
// its folder has to hold.
// One small file `dc_state` in the data directory, replaced as a whole. Format: dc/docs/state_file.md.
//
// Every version of the file begins and ends alike, so a program can tell a state of another version from damage: magic, version and length at
// the front, a checksum of all before it in the last four bytes. A whole file of an unknown version is refused with VERSION_MISMATCH.
// Invariants: a state that Save has answered OK to is what the next Load finds, whatever crashes; a state that Save had not yet answered
//   is found whole or not at all. Damage is refused with CORRUPTION naming file and offset; nothing is deleted or repaired.
// Thread-safety: none; one owner. Ownership: borrows the storage.
#ifndef DC_SERVER_STATE_FILE_H_
#define DC_SERVER_STATE_FILE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/ids.h"
#include "common/base/incarnation_number.h"
#include "common/base/status.h"
#include "common/io/storage.h"
#include "dc/page_store/checkpoint_number.h"

namespace deut::dc {

// The TC that the DC obeys (rule X5). Epoch 0: none has said Hello yet.
struct FenceState {
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;
  friend bool operator==(const FenceState&, const FenceState&) = default;
};

struct DcState {
  DcId dc;                         // drawn at the first start
  IncarnationNumber number;        // of the latest incarnation
  DcIncarnation incarnation = {};  // the latest one; 0 in a file of version 1, which had none
  FenceState fence;
  // A checkpoint of this number, or a later one, was completed and its position was told; a folder without one has lost it. 0: none was, or a
  // program of version 1 or 2 has written the file.
  CheckpointNumber kept = {};
  // X4. The log of the TC in `fence` was durable up to here, as that TC has said; 0: it has not.
  Lsn log_durable = {};
  friend bool operator==(const DcState&, const DcState&) = default;
};

std::string EncodeDcState(const DcState& state);
// Reads versions 1 to 3. CORRUPTION naming the offset; VERSION_MISMATCH, naming both, for an undamaged file of another version. `path` is for
// the message.
Result<DcState> DecodeDcState(std::string_view bytes, std::string_view path);

class StateFile {
 public:
  // `directory` exists and is locked by this process.
  StateFile(Storage& storage, std::string directory);

  // Nothing if this is a new data directory, that is, an empty one. CORRUPTION if the file is damaged, or is missing where others are.
  // VERSION_MISMATCH also if the file that Save would overwrite is an undamaged one of another version.
  Result<std::optional<DcState>> Load();
  // Durable when it returns OK. After an error the file holds the old or the new state.
  Status Save(const DcState& state);

  // Name of the lock file in the data directory.
  static constexpr std::string_view kLockName = "lock";

 private:
  Result<std::string> ReadAll(const std::string& path);

  Storage& storage_;
  const std::string directory_;
  const std::string path_;
  const std::string new_path_;
};

}  // namespace deut::dc

#endif  // DC_SERVER_STATE_FILE_H_

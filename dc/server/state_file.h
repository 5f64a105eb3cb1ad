// StateFile: the state that a DC must know before anything else: its identity, its incarnation, the TC that it obeys,
// and the checkpoints that its folder must contain. It is one small file `dc_state` in the data directory, replaced
// as a whole.
//
// Format: dc/docs/state_file.md. Every version of the file begins with magic, version and length, and ends with a
// checksum of all previous bytes in the last four. So a program can tell a state of another version from damage. An
// intact file of an unknown version is refused with VERSION_MISMATCH.
//
// Invariants: the next Load finds the state for which Save returned OK, after any crash. A state whose Save had not
// returned is found complete or not at all. Damage is refused with CORRUPTION, with file and offset; nothing is
// deleted or repaired.
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

// The TC that the DC obeys (rule X5). Epoch 0: no TC has said Hello yet.
struct FenceState {
  TcId tc;
  TcEpoch epoch;
  uint64_t nonce = 0;
  friend bool operator==(const FenceState&, const FenceState&) = default;
};

struct DcState {
  DcId dc;                         // drawn at the first start
  IncarnationNumber number;        // number of the latest incarnation
  DcIncarnation incarnation = {};  // the latest incarnation; 0 in a file of version 1, which had none
  FenceState fence;
  // A checkpoint of this number, or a later one, was completed and its position was reported to a TC; a folder without
  // such a checkpoint has lost it. 0: none was completed, or a program of version 1 or 2 has written the file.
  CheckpointNumber oldest_kept = {};
  // X4. The LSN up to which the log of the TC in `fence` was durable, as that TC has reported; 0: it has reported
  // nothing.
  Lsn log_durable = {};
  friend bool operator==(const DcState&, const DcState&) = default;
};

std::string EncodeDcState(const DcState& state);
// Reads versions 1 to 3. CORRUPTION, with the offset: the bytes are damaged. VERSION_MISMATCH, with both versions: an
// undamaged file of another version. `path` appears in the message.
Result<DcState> DecodeDcState(std::string_view bytes, std::string_view path);

class StateFile {
 public:
  // REQUIRES: `directory` exists and is locked by this process.
  StateFile(Storage& storage, std::string directory);

  // Returns nothing if the data directory is new, that is, empty. CORRUPTION: the file is damaged, or is missing
  // while other files exist. VERSION_MISMATCH also if the file that Save would overwrite is an undamaged one of
  // another version.
  Result<std::optional<DcState>> Load();
  // Replaces the state. It is durable when Save returns OK; after an error the file holds the old or the new state.
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

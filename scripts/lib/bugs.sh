# Seeded bugs: each named in integration/bugs/bugs.txt is switched on by DEUT_OMIT and must be found by a general instrument.
# A line of that file: NAME LAYER WORKLOAD [slice]; # begins a comment. WORKLOAD: where the instrument begins; "-" is anywhere.

BUGS_JUDGE=//integration/bugs:judge
BUGS_SCENARIO=//integration/scenarios:scenario

bug_lines() { sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$1"; }

# bug_instrument LAYER WORKLOAD SECONDS: the command line, in the array `instrument`
bug_instrument() {
  local layer="$1" workload="$2" seconds="$3" program
  case "$layer" in
    cluster)
      program="${BUGS_SCENARIO#//}"
      # WORKLOAD names a scenario; without it all of them are played.
      if [ "$workload" = - ]; then
        instrument=("$BUGS_BIN/${program/://}" --duration="${seconds}s" integration/scenarios/files/*.scenario)
      else
        instrument=("$BUGS_BIN/${program/://}" --duration="${seconds}s" "integration/scenarios/files/$workload.scenario")
      fi
      ;;
    *)
      program="${BUGS_JUDGE#//}"
      instrument=("$BUGS_BIN/${program/://}" --layer="$layer" --seconds="$seconds")
      [ "$workload" = - ] || instrument+=(--workload="$workload")
      ;;
  esac
}

# bug_run SECONDS LAYER WORKLOAD BUG LOG: leaves "STATUS MILLISECONDS" in LOG.status
bug_run() {
  local seconds="$1" layer="$2" workload="$3" bug="$4" log="$5" begun status=0 scratch
  local instrument=()
  bug_instrument "$layer" "$workload" "$seconds"
  scratch="$(mktemp -d)"
  begun="$(date +%s%3N)"
  # Freed memory is filled with a pattern, so that nobody who still reads there goes on unharmed. The outer redirection is for what the
  # shell has to say of a program that ended by a signal.
  { TEST_TMPDIR="$scratch" MALLOC_PERTURB_=165 DEUT_OMIT="$bug" timeout -k 5 "$((seconds + 60))" "${instrument[@]}" >"$log" 2>"$log.stderr" || status=$?; } 2>/dev/null
  printf '%s %s\n' "$status" "$(($(date +%s%3N) - begun))" >"$log.ending"
  mv "$log.ending" "$log.status"
  rm -rf "$scratch"
}

# bug_verdict LOG STATUS: by whom it was found, and as what
bug_verdict() {
  local log="$1" status="$2" said
  said="$(grep -aE '^(FOUND|CLEAN|round|[a-z_0-9]+: )' "$log" | tail -n 1)"
  if [ "$status" -gt 3 ]; then
    said="${said#round *: }"
    printf '%s: the store crashes: %s' "${said%% --*}" "$(grep -aE 'FATAL|ERROR|terminat|ssert' "$log.stderr" | tail -n 1 | sed 's/.*FATAL //' | cut -c1-100)"
  else
    said="${said#FOUND }"
    printf '%s' "${said%, * ms*}" | cut -c1-110
  fi
}

# bug_seed LOG SAID: with the round in which it was found
bug_seed() { printf '%s (%s)' "$2" "$(grep -aE '^round ' "$1" | tail -n 1)"; }

# bug_line BUG LAYER LOG RESULTS: one line of the table, one of the results
bug_line() {
  local bug="$1" layer="$2" log="$3" results="$4" status took outcome=FAIL said
  read -r status took <"$log.status"
  said="$(bug_verdict "$log" "$status")"
  if [ "$bug" = - ]; then
    [ "$status" = 0 ] && outcome=PASS
    # A bug that nobody seeded: what it was, and its seed, must be told where failures are summed up.
    printf '%s\tbugs\t%s\tfinds nothing where nothing is left out%s\n' "$outcome" "$layer" "$([ "$status" = 0 ] || bug_seed "$log" ": $said")" >>"$results"
    bug="(none)"
  else
    # Found, no progress, or the end of the process by a signal.
    case "$status" in 1 | 3 | 132 | 134 | 135 | 136 | 139) outcome=PASS ;; esac
    printf '%s\tbugs\t%s\t%s\n' "$outcome" "$layer" "$bug" >>"$results"
    [ "$outcome" = PASS ] || said="NOT CAUGHT ($said)"
  fi
  printf '%-28s %-10s %5s.%s s  %s\n' "$bug" "$layer" $((took / 1000)) $((took % 1000 / 100)) "$said"
}

run_bugs() {  # run_bugs SECONDS RESULTS FILE-WITH-LINES CLEAN-SECONDS: the table bug x caught by x time
  local seconds="$1" results="$2" lines="$3" clean_seconds="$4" folder bug layer workload limit number=0 told=0
  folder="$DEUT_CACHE/logs/bugs"
  rm -rf "$folder"
  mkdir -p "$folder"
  # First each instrument without any bug: one that finds something then is broken, or has found a bug that nobody seeded.
  {
    awk -v seconds="$clean_seconds" '!told[$2]++ { print "-", $2, $2 == "cluster" ? $3 : "-", seconds }' "$lines"
    awk -v seconds="$seconds" '{ print $1, $2, $3, seconds }' "$lines"
  } >"$folder/work"
  mapfile -t work_lines <"$folder/work"
  # Tells, in their order, those that are done.
  tell() {
    while [ "$told" -lt "${#work_lines[@]}" ] && [ -e "$folder/$((told + 1)).status" ]; do
      # shellcheck disable=SC2086
      set -- ${work_lines[$told]}
      told=$((told + 1))
      bug_line "$1" "$2" "$folder/$told" "$results"
    done
  }
  printf '%-28s %-10s %-9s %s\n' "seeded bug" layer time "caught by"
  for line in "${work_lines[@]}"; do
    read -r bug layer workload limit <<<"$line"
    number=$((number + 1))
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done  # two at a time
    tell
    bug_run "$limit" "$layer" "$workload" "${bug#-}" "$folder/$number" &
  done
  wait
  tell
}

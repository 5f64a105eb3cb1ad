# Rule tests: each test of a correctness rule passes, and fails when the rule's decisive step is left out.
# integration/rules.txt lists them, a line each: RULE MUTATION TARGET FILTER (a googletest filter); # begins a comment.

OMITTED_LIMIT_S=60   # a test must notice within this time that a step is missing
KEPT_LIMIT_S=300

rule_lines() { sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$1"; }

# rule_run SECONDS LOG MUTATION PROGRAM FILTER: the exit status of the test, 124 if it ran out of time
rule_run() {
  local seconds="$1" log="$2" mutation="$3" program="$4" filter="$5" scratch status=0
  scratch="$(mktemp -d)"
  # The outer redirection is for what the shell has to say of a test that ended by a signal.
  { TEST_TMPDIR="$scratch" DEUT_OMIT="$mutation" timeout -k 5 "$seconds" "$program" --gtest_filter="$filter" >"$log" 2>&1 || status=$?; } 2>/dev/null
  rm -rf "$scratch"
  return $status
}

run_rules() {  # run_rules FILE RESULTS: prints the table rule x kept/omitted, two results for each line
  local file="$1" results="$2" log folder rule mutation target filter program label path begun omitted status kept
  declare -A kept_before=()
  if [ ! -s "$file" ] || [ -z "$(rule_lines "$file")" ]; then
    say "no rule tests are registered in $file"
    return 0
  fi
  log="$DEUT_CACHE/logs/rules"
  mkdir -p "$log"
  # shellcheck disable=SC2046
  if ! run_bazel build --config=mutation --noshow_progress -k $(rule_lines "$file" | awk '{ print $3 }' | sort -u) 2>"$log/build"; then
    tail -n 30 "$log/build"
    say "rule tests do not build"
  fi
  folder="$(bazel_bin --config=mutation)"
  printf '%-8s %-34s %-14s %s\n' rule "step left out" kept omitted
  while read -r rule mutation target filter; do
    label="${target#//}"
    path="$log/$rule.$mutation"
    program="$folder/${label/://}"
    omitted=FAIL
    # A test that guards several steps runs, and counts, once with all of them kept.
    status="${kept_before[$target $filter]:-}"
    if [ -z "$status" ]; then
      begun=$SECONDS kept=FAIL
      if [ ! -x "$program" ]; then
        status="not built"
      elif rule_run "$KEPT_LIMIT_S" "$path.kept" "" "$program" "$filter" && grep -qE '^\[  PASSED  \] [1-9]' "$path.kept"; then
        kept=PASS
        status="passes, $((SECONDS - begun)) s"
      else
        status="FAILS"
        tail -n 20 "$path.kept"
      fi
      kept_before[$target $filter]="$status"
      printf '%s\trules\t%s\t%s %s\n' "$kept" "$target" "$rule" "$filter" >>"$results"
    fi
    printf '%-8s %-34s %-14s ' "$rule" "$mutation" "$status"
    begun=$SECONDS
    status=0
    if [ -x "$program" ]; then rule_run "$OMITTED_LIMIT_S" "$path.omitted" "$mutation" "$program" "$filter" || status=$?; else status=-1; fi
    case $status in
      -1) printf 'not built\n' ;;
      0) printf 'PASSES: the test does not see it\n' ;;
      124 | 137) printf 'NO ANSWER within %s s\n' "$OMITTED_LIMIT_S" ;;
      *)
        omitted=PASS
        printf 'fails, %s s\n' "$((SECONDS - begun))"
        ;;
    esac
    printf '%s\trules\t%s\t%s without %s\n' "$omitted" "$target" "$rule" "$mutation" >>"$results"
  done < <(rule_lines "$file")
}

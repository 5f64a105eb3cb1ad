# Probes: targets of bazel/probes that must fail, each for its reason. A sanitizer that was switched off by
# mistake, or a layering check that sees nothing, would pass every other test.

# name | bazel arguments | what the failure must say
PROBES=(
  "overflow|test --config=asan //bazel/probes:overflow_test|AddressSanitizer: heap-buffer-overflow"
  "undefined|test --config=asan //bazel/probes:undefined_test|runtime error: signed integer overflow"
  "race|test --config=tsan --test_tag_filters= //bazel/probes:race_test|ThreadSanitizer: data race"
  "fuzz-crash|test --config=fuzz //bazel/probes:crash_fuzz|libFuzzer: deadly signal"
  "layering|build //bazel/probes:layering_violation|does not depend on a module exporting 'bazel/probes/hello.h'"
  "thread-safety|build //bazel/probes:unguarded|error: reading variable 'value_' requires holding mutex"
  "warning|build //bazel/probes:unused_result|error: ignoring return value of function declared with 'nodiscard'"
)

run_probes() {  # run_probes RESULTS: one line per probe
  local probe name command reason log verdict
  log="$(mktemp)"
  for probe in "${PROBES[@]}"; do
    IFS='|' read -r name command reason <<<"$probe"
    verdict=PASS
    # shellcheck disable=SC2086
    if run_bazel $command --test_output=errors --noshow_progress >"$log" 2>&1; then
      verdict=FAIL
      say "probe $name passed, so the check that it is for does not work"
    elif ! grep -qF "$reason" "$log"; then
      verdict=FAIL
      tail -n 40 "$log"
      say "probe $name failed, but not with: $reason"
    fi
    printf '%s\tprobes\tbazel/probes\t%s\n' "$verdict" "$name" >>"$1"
  done
  rm -f "$log"
}

# How the scripts call Bazel. DEUT_BAZEL_OPTS: startup options, as --output_base=DIR to work beside another Bazel.

run_bazel() {
  # shellcheck disable=SC2086
  bazel ${DEUT_BAZEL_OPTS:-} "$@"
}

# bazel_bin OPTION...: the folder in which a build with these options leaves its programs.
bazel_bin() { run_bazel info "$@" bazel-bin 2>/dev/null; }

# target_patterns FOLDER...: Bazel patterns of those folders in which there is something to build.
target_patterns() {
  local folder
  for folder in "$@"; do
    if [ -n "$(find "$folder" -name BUILD -print -quit 2>/dev/null)" ]; then printf '//%s/...\n' "$folder"; fi
  done
}

# What the project needs and how it is built: Debian packages, and the C++ libraries that must be built
# against libc++ (Debian's own binaries of them are built against libstdc++ and cannot be linked).
# Versions, flags and DEPS_REVISION make the cache key (deps_key): changing one of them rebuilds everything.

# Raise it when a build_* function below changes what it produces.
DEPS_REVISION=3

DEBIAN_PACKAGES=(
  bazel-bootstrap clang-19 lld-19 llvm-19 libc++-19-dev libc++abi-19-dev libclang-rt-19-dev
  clang-format-19 clang-tidy-19 cmake ninja-build dpkg-dev ca-certificates
  libjemalloc-dev liblz4-dev liburing-dev libssl-dev libc-ares-dev libzstd-dev zlib1g-dev
  protobuf-compiler protobuf-compiler-grpc
  perl python3 python3-six unicode-data git openssl iproute2 spin valgrind
)

# Debian source packages, with the upstream version they must have.
ABSEIL_SOURCE=abseil ABSEIL_VERSION=20220623.1
RE2_SOURCE=re2 RE2_VERSION=20220601
PROTOBUF_SOURCE=protobuf PROTOBUF_VERSION=3.21.12
# A newer gRPC is put in its place here: its tree is taken from GRPC_TREE when that is set.
GRPC_SOURCE=grpc GRPC_VERSION=1.51.1 GRPC_TREE="${DEUT_GRPC_TREE:-}"
GOOGLETEST_SOURCE=googletest GOOGLETEST_VERSION=1.12.1
BENCHMARK_SOURCE=benchmark BENCHMARK_VERSION=1.7.1

DEPS_CXX_FLAGS="-stdlib=libc++ -march=x86-64-v3 -D_LIBCPP_ENABLE_CXX20_REMOVED_FEATURES -Wno-missing-template-arg-list-after-template-kw -w"
DEPS_C_FLAGS="-march=x86-64-v3 -w"
DEPS_LINK_FLAGS="-fuse-ld=lld-19 -stdlib=libc++"
# What is precompiled (precompile.cmake) in a library's own build.
STANDARD_HEADERS="algorithm;atomic;functional;map;memory;mutex;string;unordered_map;utility;vector"
ABSEIL_HEADERS="absl/status/status.h;absl/status/statusor.h;absl/strings/str_cat.h;absl/strings/str_format.h;absl/types/optional.h;absl/types/variant.h"
# Debian's code generators are of the same versions as the libraries: protoc and its gRPC plugin need not be built.
PROTOC=/usr/bin/protoc GRPC_CPP_PLUGIN=/usr/bin/grpc_cpp_plugin
TSAN_FLAGS="-fsanitize=thread -g1 -O1 -fno-omit-frame-pointer"

deps_key() {
  {
    printf '%s\n' "$DEPS_REVISION" "$ABSEIL_VERSION" "$RE2_VERSION" "$PROTOBUF_VERSION" "$GRPC_VERSION" "$GRPC_TREE" \
      "$GOOGLETEST_VERSION" "$BENCHMARK_VERSION" "$DEPS_CXX_FLAGS" "$DEPS_C_FLAGS" "$DEPS_LINK_FLAGS" "$TSAN_FLAGS"
    clang-19 --version 2>/dev/null | head -n 1
  } | sha256sum | cut -c1-16
}

# Our own changes to gRPC's sources (bazel/patches/README.md). They are no part of the key: they leave its headers alone, so what was compiled
# against them stays right. The archives lie in a folder that is named for them, and Bazel links anew (repositories.bzl).
grpc_folder() { printf 'grpc-%s' "$(patches_key)"; }
patches_key() { cat "$ROOT"/bazel/patches/grpc-*.patch | sha256sum | cut -c1-16; }

# What `library` calls a library's stamp.
stamp_of() {
  case "$1" in
    grpc) printf '.done-%s' "$(grpc_folder)" ;;
    *) printf '.done-%s' "$1" ;;
  esac
}

deps_complete() { [ -e "$1/.complete" ] && [ -e "$1/plain/$(stamp_of grpc)" ]; }

deps_root() { printf '%s/deps/%s' "$DEUT_CACHE" "$(deps_key)"; }

packages_missing() {
  local package
  for package in "${DEBIAN_PACKAGES[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || printf '%s\n' "$package"
  done
}

install_packages() {
  local missing sudo=""
  missing="$(packages_missing)"
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these Debian packages are missing and neither root nor sudo is at hand: $(echo $missing)"
    sudo=sudo
  fi
  say "installing $(echo "$missing" | wc -l) Debian packages"
  run_logged apt-update $sudo apt-get update
  # shellcheck disable=SC2086
  run_logged apt-install $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing
}

# A private apt configuration that lists the machine's own Debian entries as sources; the user's files stay as they are.
private_apt() {
  local dir="$1" file
  mkdir -p "$dir/lists/partial" "$dir/parts" "$dir/cache/archives/partial"
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] && grep -q 'debian-archive-keyring' "$file" || continue
    sed -E 's/^Types:.*/Types: deb-src/' "$file" >"$dir/parts/$(basename "$file")"
  done
  : >"$dir/sources.list"
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$file" ] || continue
    sed -nE 's/^deb(-src)?[[:space:]]+(\[[^]]*\][[:space:]]+)?([^[:space:]]*\/debian[^[:space:]]*)[[:space:]]/deb-src \2\3 /p' "$file"
  done | sort -u >"$dir/sources.list"
  cat >"$dir/apt.conf" <<CONF
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "$dir/parts";
Dir::State::Lists "$dir/lists";
Dir::Cache "$dir/cache";
APT::Sandbox::User "root";
CONF
}

fetch_source() {  # fetch_source SOURCE VERSION: leaves the unpacked tree in $sources/SOURCE
  local source="$1" version="$2" full
  [ -e "$sources/$source/.complete" ] && return 0
  rm -rf "${sources:?}/$source" "$sources/$source.unpack"
  mkdir -p "$sources/$source.unpack"
  if [ ! -e "$apt/updated" ]; then
    run_logged apt-sources-update env APT_CONFIG="$apt/apt.conf" apt-get update
    touch "$apt/updated"
  fi
  full="$(APT_CONFIG="$apt/apt.conf" apt-cache showsrc "$source" | sed -n 's/^Version: //p' | grep -E "^([0-9]+:)?${version//./\\.}([^0-9].*)?$" | sort -V | tail -n 1)"
  [ -n "$full" ] || die "Debian's sources list no $source $version"
  (cd "$sources/$source.unpack" && run_logged "source-$source" env APT_CONFIG="$apt/apt.conf" apt-get source --only-source "$source=$full")
  mv "$sources/$source.unpack"/*/ "$sources/$source"
  rm -rf "$sources/$source.unpack"
  touch "$sources/$source/.complete"
}

cmake_library() {  # cmake_library FLAVOUR NAME TREE TARGETS(or "") OPTION...: configure, build, install into the flavour's prefix
  local flavour="$1" name="$2" tree="$3" targets="$4" build prefix cflags="$DEPS_C_FLAGS" cxxflags="$DEPS_CXX_FLAGS"
  shift 4
  prefix="$deps/$flavour"
  build="$deps/build/$flavour-$name"
  # No folder of this machine gets into a program.
  cflags+=" -ffile-prefix-map=$deps=deps" cxxflags+=" -ffile-prefix-map=$deps=deps"
  if [ "$flavour" = tsan ]; then
    cflags+=" $TSAN_FLAGS" cxxflags+=" $TSAN_FLAGS"
  fi
  run_logged "$flavour-$name-configure" cmake -S "$tree" -B "$build" -G Ninja \
    -DCMAKE_C_COMPILER=clang-19 -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_AR=/usr/bin/llvm-ar-19 -DCMAKE_RANLIB=/usr/bin/llvm-ranlib-19 \
    -DCMAKE_C_FLAGS="$cflags" -DCMAKE_CXX_FLAGS="$cxxflags" -DCMAKE_EXE_LINKER_FLAGS="$DEPS_LINK_FLAGS" \
    -DCMAKE_CXX_STANDARD=20 -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_PROJECT_INCLUDE="$ROOT/scripts/lib/precompile.cmake" \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF "$@"
  # shellcheck disable=SC2086
  run_logged "$flavour-$name-build" ninja -C "$build" $targets
}

install_library() { run_logged "$1-$2-install" cmake --install "$deps/build/$1-$2"; }

# library FLAVOUR NAME: builds one library once; a stamp says that it is complete.
library() {
  local flavour="$1" name="$2" begun=$SECONDS
  [ -e "$deps/$flavour/$(stamp_of "$name")" ] && return 0
  say "building $name ($flavour)"
  "build_$name" "$flavour"
  rm -rf "$deps/build/$flavour-$name"
  mkdir -p "$deps/$flavour" && touch "$deps/$flavour/$(stamp_of "$name")"
  say "built $name ($flavour) in $((SECONDS - begun)) s"
}

build_abseil() {
  fetch_source "$ABSEIL_SOURCE" "$ABSEIL_VERSION"
  cmake_library "$1" abseil "$sources/$ABSEIL_SOURCE" "" -DABSL_PROPAGATE_CXX_STD=ON -DBUILD_TESTING=OFF
  install_library "$1" abseil
}

build_re2() {
  fetch_source "$RE2_SOURCE" "$RE2_VERSION"
  (cd "$sources/$RE2_SOURCE" && run_logged re2-tables bash -c '
    perl re2/make_perl_groups.pl > re2/perl_groups.cc &&
    UNICODE_DIR=/usr/share/unicode python3 re2/make_unicode_groups.py > re2/unicode_groups.cc &&
    UNICODE_DIR=/usr/share/unicode python3 re2/make_unicode_casefold.py > re2/unicode_casefold.cc')
  cmake_library "$1" re2 "$sources/$RE2_SOURCE" "" -DRE2_BUILD_TESTING=OFF
  install_library "$1" re2
}

build_protobuf() {
  fetch_source "$PROTOBUF_SOURCE" "$PROTOBUF_VERSION"
  cmake_library "$1" protobuf "$sources/$PROTOBUF_SOURCE" "" -DDEUT_PRECOMPILE=libprotobuf "-DDEUT_PRECOMPILE_HEADERS=$STANDARD_HEADERS" \
    -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_WITH_ZLIB=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF
  install_library "$1" protobuf
}

# Server reflection belongs to gRPC's own code generation in its build, which is left out: its four files, then.
build_grpc_reflection() {  # build_grpc_reflection TREE BUILD PREFIX
  local tree="$1" build="$2/reflection" prefix="$3" proto=src/proto/grpc/reflection/v1alpha/reflection source object objects=()
  mkdir -p "$build"
  "$PROTOC" -I "$tree" --cpp_out="$build" --plugin=protoc-gen-grpc="$GRPC_CPP_PLUGIN" --grpc_out="$build" "$tree/$proto.proto" || return
  for source in "$build/$proto".{pb,grpc.pb}.cc "$tree"/src/cpp/ext/proto_server_reflection{,_plugin}.cc; do
    object="$build/$(basename "$source").o"
    # shellcheck disable=SC2086
    clang++-19 $DEPS_CXX_FLAGS "-ffile-prefix-map=$deps=deps" -std=c++20 -O2 -DNDEBUG -fPIC -I"$build" -I"$tree" -I"$tree/include" -isystem "$prefix/include" \
      -c "$source" -o "$object" || return
    objects+=("$object")
  done
  llvm-ar-19 rcs "$prefix/lib/$(grpc_folder)/libgrpc++_reflection.a" "${objects[@]}"
}

# A patch touches sources, never include/: see patches_key.
patch_grpc() {  # patch_grpc TREE
  local patch
  for patch in "$ROOT"/bazel/patches/grpc-*.patch; do
    grep -q '^+++ b/include/' "$patch" && die "$patch changes a public header of gRPC"
    run_logged "patch-$(basename "$patch" .patch)" patch --directory="$1" --strip=1 --forward --input="$patch"
  done
}

build_grpc() {
  local tree="$GRPC_TREE" build="$deps/build/$1-grpc" library
  if [ -z "$tree" ]; then
    fetch_source "$GRPC_SOURCE" "$GRPC_VERSION"
    tree="$sources/$GRPC_SOURCE"
    [ -e "$tree/.patched" ] || patch_grpc "$tree"
    touch "$tree/.patched"
  fi
  # Only the target used: the default compiles everything a second time as *_unsecure.
  cmake_library "$1" grpc "$tree" grpc++ -DgRPC_BUILD_CODEGEN=OFF -DProtobuf_PROTOC_LIBRARY=not-built \
    "-DDEUT_PRECOMPILE=gpr;grpc;grpc++" "-DDEUT_PRECOMPILE_HEADERS=$STANDARD_HEADERS;$ABSEIL_HEADERS" \
    -DgRPC_ABSL_PROVIDER=package -DgRPC_CARES_PROVIDER=package -DgRPC_PROTOBUF_PROVIDER=package \
    -DgRPC_RE2_PROVIDER=package -DgRPC_SSL_PROVIDER=package -DgRPC_ZLIB_PROVIDER=package \
    -DgRPC_BUILD_TESTS=OFF -DgRPC_INSTALL=OFF -DgRPC_BUILD_CSHARP_EXT=OFF
  mkdir -p "$deps/$1/lib/$(grpc_folder)" "$deps/$1/include"
  for library in grpc++ grpc gpr address_sorting upb; do
    cp "$build/lib$library.a" "$deps/$1/lib/$(grpc_folder)/" || die "gRPC's build left no lib$library.a in $build"
  done
  cp -r "$tree/include/." "$deps/$1/include/"
  run_logged "$1-grpc-reflection" build_grpc_reflection "$tree" "$build" "$deps/$1"
}

build_googletest() {
  fetch_source "$GOOGLETEST_SOURCE" "$GOOGLETEST_VERSION"
  cmake_library "$1" googletest "$sources/$GOOGLETEST_SOURCE" ""
  install_library "$1" googletest
}

build_benchmark() {
  fetch_source "$BENCHMARK_SOURCE" "$BENCHMARK_VERSION"
  cmake_library "$1" benchmark "$sources/$BENCHMARK_SOURCE" "" -DGIT_VERSION="$BENCHMARK_VERSION" \
    -DBENCHMARK_ENABLE_TESTING=OFF -DBENCHMARK_ENABLE_WERROR=OFF
  install_library "$1" benchmark
}

build_libraries() {
  sources="$deps/sources" apt="$deps/apt"
  mkdir -p "$sources" "$apt"
  private_apt "$apt"
  local name
  for name in abseil googletest protobuf re2 grpc benchmark; do library plain "$name"; done
  for name in abseil googletest protobuf; do library tsan "$name"; done
  rm -rf "$sources" "$apt" "$deps/build"
}

# The stores that this project is measured beside (integration/bench): which Debian packages they come from, and which are there.

RIVAL_PACKAGES=(librocksdb-dev liblmdb-dev libwiredtiger-dev libhiredis-dev redis-server libpq-dev postgresql)

# engine, and the header that its backend needs
RIVAL_HEADERS=(
  "rocksdb rocksdb/c.h"
  "lmdb lmdb.h"
  "wiredtiger wiredtiger.h"
  "redis hiredis/hiredis.h"
  "postgres postgresql/libpq-fe.h"
)

install_rivals() {
  local sudo=""
  if [ "$(id -u)" != 0 ]; then sudo=sudo; fi
  say "installing ${RIVAL_PACKAGES[*]}"
  run_logged rivals_update $sudo apt-get update -q
  run_logged rivals_install $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${RIVAL_PACKAGES[@]}"
}

# The engines whose libraries are installed, a line each.
rivals_installed() {
  local engine header
  while read -r engine header; do
    if [ -e "/usr/include/$header" ]; then echo "$engine"; fi
  done < <(printf '%s\n' "${RIVAL_HEADERS[@]}")
}

# Sources that cannot be compiled here, for want of a rival's header.
rivals_sources_missing() {
  local engine header
  while read -r engine header; do
    if [ ! -e "/usr/include/$header" ]; then echo "integration/bench/${engine}_backend.cc"; fi
  done < <(printf '%s\n' "${RIVAL_HEADERS[@]}")
}

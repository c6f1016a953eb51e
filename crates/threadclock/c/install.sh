#!/bin/sh
# Installs the C interface: header, shared and static library, pkg-config file.
# usage: crates/threadclock/c/install.sh [PREFIX]     (DESTDIR is honoured)
# Takes the libraries from LIBRARIES, else builds them in release mode.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
prefix=${1:-/usr/local}
libdir=$prefix/lib
root=${DESTDIR:-}
if [ -z "${LIBRARIES:-}" ]; then
    (cd "$here" && cargo build --release --lib)
    target=$(cd "$here" && cargo metadata --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    LIBRARIES=$target/release
fi
version=$(sed -n 's/^version *= *"\(.*\)"/\1/p' "$here/../../Cargo.toml" | head -n 1)

mkdir -p "$root$libdir/pkgconfig" "$root$prefix/include"
install -m 644 "$here/include/threadclock.h" "$root$prefix/include/"
install -m 644 "$LIBRARIES/libthreadclock.a" "$root$libdir/"
install -m 755 "$LIBRARIES/libthreadclock.so" "$root$libdir/libthreadclock.so.0"
ln -sf libthreadclock.so.0 "$root$libdir/libthreadclock.so"
# What the static library needs besides: `cargo rustc -- --print native-static-libs`.
sed -e "s|@PREFIX@|$prefix|" -e "s|@LIBDIR@|$libdir|" -e "s|@VERSION@|$version|" \
    -e "s|@PRIVATE@|-lgcc_s -lutil -lrt -lpthread -lm -ldl -lc|" \
    "$here/c/threadclock.pc.in" >"$root$libdir/pkgconfig/threadclock.pc"

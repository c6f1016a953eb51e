#!/bin/sh
# Installs the C interface of the crate in whose folder this lies: headers, shared and static library, pkg-config file.
# usage: crates/CRATE/c/install.sh [PREFIX]     (DESTDIR and LIBDIR are honoured)
# Takes the libraries from LIBRARIES, else builds them in release mode.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
of() { sed -n "s/^$1 *= *\"\(.*\)\"/\1/p" "$2" | head -n 1; }
name=$(of name "$here/Cargo.toml")
prefix=${1:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
root=${DESTDIR:-}
if [ -z "${LIBRARIES:-}" ]; then
    (cd "$here" && cargo build --release --lib)
    target=$(cd "$here" && cargo metadata --no-deps --format-version 1 |
        sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
    LIBRARIES=$target/release
fi

mkdir -p "$root$libdir/pkgconfig" "$root$prefix/include"
install -m 644 "$here/include/"* "$root$prefix/include/"
install -m 644 "$LIBRARIES/lib$name.a" "$root$libdir/"
install -m 755 "$LIBRARIES/lib$name.so" "$root$libdir/lib$name.so.0"
ln -sf "lib$name.so.0" "$root$libdir/lib$name.so"
# What the static library needs besides: `cargo rustc -- --print native-static-libs`.
cat >"$root$libdir/pkgconfig/$name.pc" <<PC
prefix=$prefix
libdir=$libdir
includedir=\${prefix}/include

Name: $name
Description: $(of description "$here/Cargo.toml")
Version: $(cd "$here" && cargo pkgid | sed 's/.*[#@]//')
Cflags: -I\${includedir}
Libs: -L\${libdir} -l$name
Libs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
PC

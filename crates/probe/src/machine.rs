//! What this host is, read from /proc and /sys.

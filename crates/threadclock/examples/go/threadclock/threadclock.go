// Package threadclock reads a thread's CPU time for the price of a time stamp and a cgo call.
//
// Goroutines move between threads, and each thread has a clock of its own: readings may only be subtracted between
// runtime.LockOSThread and runtime.UnlockOSThread. Measure does that.
package threadclock

// #cgo pkg-config: threadclock
// #include <threadclock.h>
import "C"

import (
	"runtime"
	"time"
)

// Now is the CPU time of the thread that the goroutine runs on. The goroutine should be locked to it.
func Now() time.Duration {
	return time.Duration(C.threadclock_now_ns())
}

// Measure gives the CPU time that f takes on its thread. What f starts in other goroutines is not counted.
func Measure(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := Now()
	f()
	return Now() - start
}

// Tier is how the thread's time is read: "rseq", "perf-page", "system-call" or "kernel".
func Tier() string {
	return C.GoString(C.threadclock_tier())
}

// ErrorBound is how far Now can be from CLOCK_THREAD_CPUTIME_ID read around it.
func ErrorBound() time.Duration {
	return time.Duration(C.threadclock_error_bound_ns())
}

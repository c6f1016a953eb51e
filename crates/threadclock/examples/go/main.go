// What sleeping and sorting take, by threadclock; sees that it agrees with the kernel's clock. Exits 0 if it does.
//
//	crates/threadclock/c/install.sh /usr/local && ldconfig
//	go run .
package main

import (
	"fmt"
	"log"
	"math/rand"
	"runtime"
	"sort"
	"syscall"
	"time"
	"unsafe"

	"example/threadclock"
)

const clockThreadCPUTime = 3 // CLOCK_THREAD_CPUTIME_ID

func kernelTime() time.Duration {
	var read syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockThreadCPUTime, uintptr(unsafe.Pointer(&read)), 0)
	return time.Duration(read.Nano())
}

func milliseconds(time time.Duration) float64 {
	return time.Seconds() * 1000
}

// costNs is the median over batches of a call's CPU time in nanoseconds.
func costNs(call func() time.Duration) float64 {
	const calls = 20_000
	batches := make([]float64, 51)
	for i := range batches {
		start := threadclock.Now()
		for j := 0; j < calls; j++ {
			call()
		}
		batches[i] = float64(threadclock.Now()-start) / calls
	}
	sort.Float64s(batches)
	return batches[len(batches)/2]
}

func main() {
	log.SetFlags(log.Lshortfile)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	tier := threadclock.Tier()
	fmt.Printf("tier %s, bound %v\n", tier, threadclock.ErrorBound())
	if tier == "kernel" {
		fmt.Println("no fast tier here: each reading asks the kernel")
	}

	start := time.Now()
	slept := threadclock.Measure(func() { time.Sleep(50 * time.Millisecond) })
	wall := time.Since(start)
	fmt.Printf("sleep: %.3f ms of CPU time in %.3f ms\n", milliseconds(slept), milliseconds(wall))
	if slept >= wall/2 {
		log.Fatal("the sleep was counted")
	}

	numbers := rand.Perm(1_000_000)
	start, kernelStart := time.Now(), kernelTime()
	sorted := threadclock.Measure(func() {
		sort.Ints(numbers[:len(numbers)/2])
		time.Sleep(50 * time.Millisecond)
		sort.Ints(numbers)
	})
	kernel := kernelTime() - kernelStart
	wall = time.Since(start)
	fmt.Printf("sort, interrupted by a sleep: %.3f ms of CPU time in %.3f ms, %.3f ms by the kernel's clock\n",
		milliseconds(sorted), milliseconds(wall), milliseconds(kernel))
	if sorted <= kernel/2 || sorted >= kernel*2 {
		log.Fatal("it does not agree with the kernel's clock")
	}

	own := costNs(threadclock.Now)
	fmt.Printf("a reading: %.1f ns; of the kernel's clock: %.1f ns\n", own, costNs(kernelTime))
}

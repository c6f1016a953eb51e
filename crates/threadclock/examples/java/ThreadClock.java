import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;

/**
 * The CPU time of the calling thread, by java.lang.foreign: JDK 22 or later, with --enable-native-access=ALL-UNNAMED.
 * For older JDKs there is jni/ThreadClock.java.
 *
 * <p>Each thread has a clock of its own: never subtract readings of different threads. A virtual thread reads the clock
 * of the thread that carries it, and may be carried by another after it has blocked: the readings throw there.
 */
final class ThreadClock {
    private static final SymbolLookup LIBRARY = SymbolLookup.libraryLookup("libthreadclock.so.0", Arena.global());
    // Not Linker.Option.critical: it saves 1 ns, and forbids calls that block, which a thread's first one may.
    private static final MethodHandle NOW_NS = function("threadclock_now_ns", ValueLayout.JAVA_LONG);
    private static final MethodHandle ERROR_BOUND_NS = function("threadclock_error_bound_ns", ValueLayout.JAVA_LONG);
    private static final MethodHandle TIER = function("threadclock_tier", ValueLayout.ADDRESS);

    private ThreadClock() {}

    private static MethodHandle function(String name, ValueLayout result) {
        return Linker.nativeLinker().downcallHandle(LIBRARY.find(name).orElseThrow(), FunctionDescriptor.of(result));
    }

    private static void needPlatformThread() {
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException("a virtual thread has no CPU time of its own: use a platform thread");
        }
    }

    /** The calling thread's CPU time in nanoseconds. */
    static long nowNs() {
        needPlatformThread();
        try {
            return (long) NOW_NS.invokeExact();
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** How far nowNs() can be from CLOCK_THREAD_CPUTIME_ID read around it. */
    static long errorBoundNs() {
        needPlatformThread();
        try {
            return (long) ERROR_BOUND_NS.invokeExact();
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }

    /** How the thread's time is read: "rseq", "perf-page", "system-call" or "kernel". */
    static String tier() {
        needPlatformThread();
        try {
            return ((MemorySegment) TIER.invokeExact()).reinterpret(16).getString(0);
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        }
    }
}

/**
 * The CPU time of the calling thread, by JNI: any JDK. From 22 on ../ThreadClock.java does it without C.
 *
 * <p>Each thread has a clock of its own: never subtract readings of different threads. Call it from platform threads
 * only: a virtual thread may be carried by another thread after it has blocked.
 */
final class ThreadClock {
    static {
        System.loadLibrary("threadclockjni");
    }

    private ThreadClock() {}

    /** The calling thread's CPU time in nanoseconds. */
    static native long nowNs();

    /** How far nowNs() can be from CLOCK_THREAD_CPUTIME_ID read around it. */
    static native long errorBoundNs();

    /** How the thread's time is read: "rseq", "perf-page", "system-call" or "kernel". */
    static native String tier();
}

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.Arrays;
import java.util.Random;
import java.util.function.LongSupplier;

/**
 * What sleeping and sorting take, by ThreadClock; sees that it agrees with the kernel's clock. Exits 0 if it does.
 *
 * <pre>
 * javac -d classes ThreadClock.java Example.java           # JDK 22 or later
 * java --enable-native-access=ALL-UNNAMED -cp classes Example
 *
 * javac -d classes jni/ThreadClock.java Example.java       # any JDK; jni/threadclock_jni.c says how it is compiled
 * java -Djava.library.path=. -cp classes Example
 * </pre>
 */
final class Example {
    private static final ThreadMXBean KERNEL = ManagementFactory.getThreadMXBean();
    private static final int CALLS = 20_000;
    /** So that no call is left out. */
    private static long sum;

    // A loop for each clock: one for both would call them through a virtual method.
    private static double[] own() {
        double[] batches = new double[101];
        for (int i = 0; i < batches.length; i++) {
            long start = ThreadClock.nowNs();
            for (int call = 0; call < CALLS; call++) {
                sum += ThreadClock.nowNs();
            }
            batches[i] = (ThreadClock.nowNs() - start) / (double) CALLS;
        }
        return batches;
    }

    private static double[] kernels() {
        double[] batches = new double[101];
        for (int i = 0; i < batches.length; i++) {
            long start = ThreadClock.nowNs();
            for (int call = 0; call < CALLS; call++) {
                sum += KERNEL.getCurrentThreadCpuTime();
            }
            batches[i] = (ThreadClock.nowNs() - start) / (double) CALLS;
        }
        return batches;
    }

    /** CPU time of a call, in the second half of the batches: the first are interpreted. */
    private static double median(double[] batches) {
        double[] compiled = Arrays.copyOfRange(batches, batches.length / 2, batches.length);
        Arrays.sort(compiled);
        return compiled[compiled.length / 2];
    }

    private static void expect(boolean is, String what) {
        if (!is) {
            System.err.println("not so: " + what);
            System.exit(1);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        String tier = ThreadClock.tier();
        System.out.printf("tier %s, bound %.0f us%n", tier, ThreadClock.errorBoundNs() / 1e3);
        if (tier.equals("kernel")) {
            System.out.println("no fast tier here: each reading asks the kernel");
        }

        long wallStart = System.nanoTime();
        long start = ThreadClock.nowNs();
        Thread.sleep(50);
        long slept = ThreadClock.nowNs() - start;
        long wall = System.nanoTime() - wallStart;
        System.out.printf("sleep: %.3f ms of CPU time in %.3f ms%n", slept / 1e6, wall / 1e6);
        expect(slept < wall / 2, "a sleep takes no CPU time");

        int[] numbers = new Random(1).ints(1_000_000).toArray();
        long kernelStart = KERNEL.getCurrentThreadCpuTime();
        start = ThreadClock.nowNs();
        Arrays.sort(numbers);
        long sorted = ThreadClock.nowNs() - start;
        long kernel = KERNEL.getCurrentThreadCpuTime() - kernelStart;
        System.out.printf("sort: %.3f ms of CPU time, %.3f ms by the kernel's clock%n", sorted / 1e6, kernel / 1e6);
        expect(sorted > kernel / 2 && sorted < kernel * 2, "it agrees with the kernel's clock");

        double own = median(own());
        System.out.printf("a reading: %.1f ns; of the kernel's clock: %.1f ns%n", own, median(kernels()));
        expect(sum != 0, "the clocks have run");
    }
}

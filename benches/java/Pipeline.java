import com.lmax.disruptor.BusySpinWaitStrategy;
import com.lmax.disruptor.EventHandler;
import com.lmax.disruptor.RingBuffer;
import com.lmax.disruptor.dsl.Disruptor;
import com.lmax.disruptor.dsl.ProducerType;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import org.HdrHistogram.Histogram;

/**
 * The two-thread work of perf-workshop on LMAX's own ring: a producer that copies records out of a mapped
 * file, stamps and publishes them, and an accumulator that records transit and inter-message time.
 *
 * <p>Arguments: input file, bytes of a record, slots of the ring, messages of the warm-up, measured
 * messages (both multiples of the records in the file, which is an iteration), nanoseconds between publications, nanoseconds of pause after the warm-up. Prints
 * {@code threads PRODUCER ACCUMULATOR} (names of threads) and waits for a line on its input, so that who
 * started it can pin them; in the end prints {@code result key=value ...}, times in nanoseconds.
 *
 * <p>Where it differs from its ancestor it does so in Java's favour: the stamp is taken after the copy, the
 * last thing before the publication, and there is no second consumer.
 */
public final class Pipeline {
    private static final String PRODUCER = "bench-producer";
    private static final String ACCUMULATOR = "bench-accumul";
    private static final long AN_HOUR = 3_600_000_000_000L;

    /** A slot. */
    private static final class Message {
        final ByteBuffer payload;
        boolean lastInFile;
        boolean lastInStream;
        boolean measured;
        long sequence;
        int sequenceInFile;
        long published;

        Message(int length) {
            payload = ByteBuffer.allocateDirect(length);
        }
    }

    /** The consumer. */
    private static final class Accumulator implements EventHandler<Message> {
        final Histogram transit = new Histogram(AN_HOUR, 3);
        final Histogram inter = new Histogram(AN_HOUR, 3);
        final CountDownLatch warm = new CountDownLatch(1);
        private final CountDownLatch ready;
        private final long warmUp;
        private long previous;
        private long expected;
        long disordered;

        Accumulator(CountDownLatch ready, long warmUp) {
            this.ready = ready;
            this.warmUp = warmUp;
        }

        @Override
        public void onStart() {
            ready.countDown();
        }

        /** Forgets the warm-up, as often as it has iterations: compiled code has seen this branch. */
        private void iterationEnds(Message message) {
            if (!message.measured) {
                transit.reset();
                inter.reset();
                if (expected == warmUp) {
                    warm.countDown();
                }
            }
        }

        @Override
        public void onEvent(Message message, long sequence, boolean endOfBatch) {
            long now = System.nanoTime();
            if (message.sequence != expected) {
                disordered++;
            }
            expected = message.sequence + 1;
            if (message.sequence > 0) {
                transit.recordValue(Math.min(now - message.published, AN_HOUR));
                inter.recordValue(Math.min(now - previous, AN_HOUR));
            }
            previous = now;
            if (message.lastInFile) {
                iterationEnds(message);
            }
        }
    }

    /** The producer. */
    private static final class Producer implements Runnable {
        private final RingBuffer<Message> ring;
        private final Accumulator accumulator;
        private final Path input;
        private final int length;
        private final long warmUp;
        private final long messages;
        private final long interval;
        private final long pause;
        Throwable failure;

        Producer(RingBuffer<Message> ring, Accumulator accumulator, Path input, int length, long[] settings) {
            this.ring = ring;
            this.accumulator = accumulator;
            this.input = input;
            this.length = length;
            this.warmUp = settings[0];
            this.messages = settings[1];
            this.interval = settings[2];
            this.pause = settings[3];
        }

        @Override
        public void run() {
            try (FileChannel channel = FileChannel.open(input, StandardOpenOption.READ)) {
                MappedByteBuffer file = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
                file.load();
                iterations(file, 0, warmUp, false);
                accumulator.warm.await();
                Thread.sleep(pause / 1_000_000L);
                iterations(file, warmUp, warmUp + messages, true);
            } catch (IOException | InterruptedException | RuntimeException error) {
                failure = error;
            }
        }

        /** The whole file, over and over. */
        private void iterations(MappedByteBuffer file, long from, long until, boolean measured) {
            int records = file.capacity() / length;
            for (long n = from; n < until; n += records) {
                iteration(file, n, records, measured, n + records == until);
            }
        }

        private void iteration(MappedByteBuffer file, long first, int records, boolean measured, boolean last) {
            for (int n = 0; n < records; n++) {
                boolean lastInFile = n == records - 1;
                // In this order: what is compiled is thrown away when a branch is first taken.
                publish(file, first + n, n, measured, lastInFile, lastInFile && last);
                long next = System.nanoTime() + interval;
                while (System.nanoTime() < next) {
                    Thread.onSpinWait();
                }
            }
        }

        private void publish(
                MappedByteBuffer file, long n, int inFile, boolean measured, boolean lastInFile, boolean last) {
            long slot = ring.next();
            try {
                Message message = ring.get(slot);
                message.payload.clear();
                file.limit((inFile + 1) * length).position(inFile * length);
                message.payload.put(file);
                message.sequence = n;
                message.sequenceInFile = inFile;
                message.lastInFile = lastInFile;
                message.measured = measured;
                message.lastInStream = last;
                message.published = System.nanoTime();
            } finally {
                ring.publish(slot);
            }
        }
    }

    /** KiB of the highest resident memory, as the kernel counted it. */
    private static long peakKib() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new IOException("/proc/self/status has no VmHWM");
    }

    public static void main(String[] args) throws Exception {
        if (args.length != 7) {
            System.err.println("usage: Pipeline INPUT RECORD_LENGTH RING WARM_UP MESSAGES INTERVAL_NS PAUSE_NS");
            System.exit(2);
        }
        Path input = Path.of(args[0]);
        int length = Integer.parseInt(args[1]);
        long[] settings = new long[4];
        for (int i = 0; i < settings.length; i++) {
            settings[i] = Long.parseLong(args[3 + i]);
        }
        long records = Files.size(input) / length;
        if (records == 0 || settings[0] % records != 0 || settings[1] % records != 0) {
            System.err.println("the input's " + records + " records do not divide warm-up and messages");
            System.exit(2);
        }
        // A thread has its name, by which it is found from outside, once it runs.
        CountDownLatch ready = new CountDownLatch(2);
        CountDownLatch go = new CountDownLatch(1);
        ThreadFactory consumers = body -> new Thread(body, ACCUMULATOR);
        Disruptor<Message> disruptor = new Disruptor<>(
                () -> new Message(length),
                Integer.parseInt(args[2]),
                consumers,
                ProducerType.SINGLE,
                new BusySpinWaitStrategy());
        Accumulator accumulator = new Accumulator(ready, settings[0]);
        disruptor.handleEventsWith(accumulator);
        RingBuffer<Message> ring = disruptor.start();
        Producer producer = new Producer(ring, accumulator, input, length, settings);
        Thread thread = new Thread(() -> {
            ready.countDown();
            try {
                go.await();
            } catch (InterruptedException error) {
                return;
            }
            producer.run();
        }, PRODUCER);
        thread.start();
        ready.await();

        System.out.println("threads " + PRODUCER + " " + ACCUMULATOR);
        System.out.flush();
        if (System.in.read() < 0) {
            System.exit(1);
        }
        go.countDown();
        thread.join();
        if (producer.failure != null) {
            producer.failure.printStackTrace();
            System.exit(1);
        }
        disruptor.shutdown();
        Histogram transit = accumulator.transit;
        System.out.println("result count=" + transit.getTotalCount()
                + " inter_count=" + accumulator.inter.getTotalCount()
                + " disordered=" + accumulator.disordered
                + " min=" + transit.getMinValue()
                + " p50=" + transit.getValueAtPercentile(50)
                + " p99=" + transit.getValueAtPercentile(99)
                + " p99_9=" + transit.getValueAtPercentile(99.9)
                + " max=" + transit.getMaxValue()
                + " peak_rss_kib=" + peakKib());
    }
}

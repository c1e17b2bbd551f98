package isthmus.pulsar;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.apache.pulsar.client.api.v5.async.AsyncMessageBuilder;

/** Many messages from a seed: made here, so that they need not come through the pipe, and the same for the same seed. */
final class Generator {
    /** Sends that may be without an answer. */
    private static final int PENDING = 2000;

    private final Producers producers;
    private final Tallies tallies;

    Generator(Producers producers, Tallies tallies) {
        this.producers = producers;
        this.tallies = tallies;
    }

    void register(Map<String, Main.Command> commands) {
        commands.put("generate", this::generate);
    }

    private static final class Sent {
        final Tallies.Item item;
        volatile boolean stored;

        Sent(Tallies.Item item) {
            this.item = item;
        }
    }

    /** Sends as quickly as it can, or at a rate, and waits until all is answered. The stored ones go into a tally. */
    private Object generate(Args args) throws Exception {
        Producers.Open open = producers.get(args);
        Messages messages = new Messages(args);
        Tallies.Tally tally = args.has("tally") ? tallies.of(args.text("tally")) : null;
        long count = args.number("count");
        long nanosEach = args.has("ratePerSecond") ? 1_000_000_000L / args.number("ratePerSecond") : 0;
        Semaphore free = new Semaphore(PENDING);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        List<Sent> all = new ArrayList<>();
        long begun = System.nanoTime();
        for (long i = 0; i < count; i++) {
            LockSupport.parkNanos(begun + i * nanosEach - System.nanoTime());
            free.acquire();
            AsyncMessageBuilder<Object> message = open.producer().async().newMessage();
            Sent sent = new Sent(messages.fill(message, i, open.cluster()));
            all.add(sent);
            message.send().whenComplete((id, error) -> {
                sent.stored = error == null;
                if (error != null) {
                    failure.compareAndSet(null, error);
                }
                free.release();
            });
        }
        open.producer().async().flush();
        free.acquire(PENDING);
        long ms = (System.nanoTime() - begun) / 1_000_000;
        List<Tallies.Item> stored = all.stream().filter(sent -> sent.stored).map(sent -> sent.item).toList();
        if (tally != null) {
            tally.addAll(stored);
        }
        String error = failure.get() == null ? "" : failure.get().toString();
        return Map.of("stored", stored.size(), "failed", all.size() - stored.size(), "error", error, "ms", ms);
    }

    /** The messages of one call, made one after the other. */
    private static final class Messages {
        private final SplittableRandom random;
        private final String name;
        private final String keyPrefix;
        private final int keys;
        private final int minBytes;
        private final int maxBytes;
        private final int unkeyedPercent;
        private final boolean compressible;

        Messages(Args args) {
            long seed = args.number("seed");
            random = new SplittableRandom(seed);
            name = args.text("name", "s" + seed);
            keyPrefix = args.text("keyPrefix", "k");
            keys = (int) args.number("keys", 100);
            minBytes = (int) args.number("minBytes", 20);
            maxBytes = (int) args.number("maxBytes", Math.max(minBytes, 200));
            unkeyedPercent = (int) args.number("unkeyedPercent", 0);
            compressible = args.flag("compressible", true);
        }

        Tallies.Item fill(AsyncMessageBuilder<Object> message, long i, String cluster) {
            String key = random.nextInt(100) < unkeyedPercent ? null : keyPrefix + random.nextInt(keys);
            byte[] value = value(i);
            message.value(value);
            if (key != null) {
                message.key(key);
            }
            return Tallies.Item.sent(cluster, key, value);
        }

        /** Begins with a text that no other message of the test has; the rest is words or noise. */
        private byte[] value(long i) {
            byte[] head = (name + "-" + i + " ").getBytes(StandardCharsets.UTF_8);
            int length = Math.max(head.length, random.nextInt(minBytes, maxBytes + 1));
            byte[] value = new byte[length];
            random.nextBytes(value);
            for (int at = 0; compressible && at < length; at++) {
                value[at] = (byte) ('a' + (value[at] & 3));
            }
            System.arraycopy(head, 0, value, 0, head.length);
            return value;
        }
    }
}

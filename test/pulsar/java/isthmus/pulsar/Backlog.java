package isthmus.pulsar;

import java.time.Duration;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.schema.Schema;

/**
 * A backlog for measurements, with equal entries on a scalable and on a classic topic: messages of one size and one key,
 * so that a batch is not divided, with values that do not compress. Nothing of it is kept here.
 */
final class Backlog {
    /** Sends that may be without an answer. */
    private static final int PENDING = 1000;

    /** Batches are closed by their number of messages, never by time. */
    private static final Duration LONG = Duration.ofSeconds(30);

    private static final String KEY = "k";

    /** Sends one value without waiting. */
    private interface Sender {
        CompletableFuture<?> send(byte[] value);
    }

    private final Clients clients;

    Backlog(Clients clients) {
        this.clients = clients;
    }

    void register(Map<String, Main.Command> commands) {
        commands.put("backlog", this::write);
    }

    /** {@code count} messages of {@code bytes}, in batches of {@code batch} messages, 1 being none. */
    private Object write(Args args) throws Exception {
        String topic = args.text("topic");
        int batch = (int) args.number("batch");
        if (topic.startsWith("topic://")) {
            BatchingPolicy batching = batch == 1
                    ? BatchingPolicy.ofDisabled()
                    : BatchingPolicy.builder().enabled(true).maxMessages(batch).maxPublishDelay(LONG).build();
            try (Producer<byte[]> producer = clients.get(args)
                    .v5
                    .newProducer(Schema.bytes())
                    .topic(topic)
                    .batchingPolicy(batching)
                    .create()) {
                sendAll(args, value -> producer.async().newMessage().key(KEY).value(value).send());
            }
            return null;
        }
        try (var producer = clients.get(args)
                .classic()
                .newProducer()
                .topic(topic)
                .enableBatching(batch > 1)
                .batchingMaxMessages(Math.max(2, batch))
                .batchingMaxPublishDelay(LONG.toSeconds(), TimeUnit.SECONDS)
                .maxPendingMessages(PENDING)
                .create()) {
            sendAll(args, value -> producer.newMessage().key(KEY).value(value).sendAsync());
        }
        return null;
    }

    private static void sendAll(Args args, Sender sender) throws Exception {
        SplittableRandom random = new SplittableRandom(1);
        Semaphore free = new Semaphore(PENDING);
        AtomicReference<Throwable> failure = new AtomicReference<>();
        long count = args.number("count");
        int bytes = (int) args.number("bytes");
        for (long i = 0; i < count; i++) {
            free.acquire();
            byte[] value = new byte[bytes];
            random.nextBytes(value);
            sender.send(value).whenComplete((id, error) -> {
                if (error != null) {
                    failure.compareAndSet(null, error);
                }
                free.release();
            });
        }
        free.acquire(PENDING);
        if (failure.get() != null) {
            throw new IllegalStateException("the backlog is not stored: " + failure.get(), failure.get());
        }
    }
}

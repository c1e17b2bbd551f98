package isthmus.pulsar;

import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.client.api.v5.Message;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.QueueConsumer;
import org.apache.pulsar.client.api.v5.StreamConsumer;
import org.apache.pulsar.client.api.v5.auth.PemFileKeyProvider;
import org.apache.pulsar.client.api.v5.config.ConsumerEncryptionPolicy;
import org.apache.pulsar.client.api.v5.config.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.v5.schema.GenericRecord;
import org.apache.pulsar.client.api.v5.schema.Schema;

/** Consumers of scalable topics, and what they read. */
final class Consumers {
    /** How long one attempt to receive waits. */
    private static final Duration STEP = Duration.ofMillis(100);

    /** Values up to this length are shown, longer ones by their hash. */
    private static final int SHOWN_BYTES = 256;

    /** What both kinds have in common. */
    interface Reader extends AutoCloseable {
        /** Null when nothing came in time. */
        Message<Object> receive(Duration limit) throws Exception;

        /** A stream acknowledges all up to the message: it gets past a sealed segment only when that is settled. */
        void acknowledge(MessageId id);
    }

    /** An open consumer, with the client that it belongs to, which is named as its cluster. */
    private record Open(Reader reader, String cluster) {}

    private final Clients clients;
    private final Tallies tallies;
    private final Handles<Open> consumers = new Handles<>("consumer");

    Consumers(Clients clients, Tallies tallies) {
        this.clients = clients;
        this.tallies = tallies;
    }

    void register(Map<String, Main.Command> commands) {
        commands.put("consumer", args -> {
            PulsarClient client = clients.get(args).v5;
            Reader reader = args.text("kind").equals("stream") ? stream(client, args) : queue(client, args);
            consumers.add(args.text("consumer"), new Open(reader, args.text("client")));
            return null;
        });
        commands.put("read", this::read);
        commands.put("closeConsumer", args -> {
            consumers.remove(args.text("consumer")).reader().close();
            return null;
        });
    }

    private static Reader stream(PulsarClient client, Args args) throws Exception {
        Schema<Object> schema = Shapes.schema(args.text("schema", "bytes"));
        var builder = client.newStreamConsumer(schema)
                .topic(args.text("topic"))
                .subscriptionName(args.text("subscription"))
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST);
        if (args.has("encryption")) {
            builder.encryptionPolicy(encryption(args.part("encryption")));
        }
        StreamConsumer<Object> consumer = builder.subscribe();
        return new Reader() {
            @Override
            public Message<Object> receive(Duration limit) throws Exception {
                return consumer.receive(limit);
            }

            @Override
            public void acknowledge(MessageId id) {
                consumer.acknowledgeCumulative(id);
            }

            @Override
            public void close() throws Exception {
                consumer.close();
            }
        };
    }

    private static Reader queue(PulsarClient client, Args args) throws Exception {
        Schema<Object> schema = Shapes.schema(args.text("schema", "bytes"));
        var builder = client.newQueueConsumer(schema)
                .topic(args.text("topic"))
                .subscriptionName(args.text("subscription"))
                .subscriptionInitialPosition(SubscriptionInitialPosition.EARLIEST);
        if (args.has("encryption")) {
            builder.encryptionPolicy(encryption(args.part("encryption")));
        }
        QueueConsumer<Object> consumer = builder.subscribe();
        return new Reader() {
            @Override
            public Message<Object> receive(Duration limit) throws Exception {
                return consumer.receive(limit);
            }

            @Override
            public void acknowledge(MessageId id) {
                consumer.acknowledge(id);
            }

            @Override
            public void close() throws Exception {
                consumer.close();
            }
        };
    }

    private static ConsumerEncryptionPolicy encryption(Args key) {
        PemFileKeyProvider keys = PemFileKeyProvider.builder()
                .privateKey(key.text("name"), Path.of(key.text("privateKeyFile")))
                .build();
        return ConsumerEncryptionPolicy.builder().privateKeyProvider(keys).build();
    }

    /**
     * Reads until there are {@code count} messages or nothing has come for {@code quietMs}. They go into a tally, or
     * into the answer, or both. What is delivered twice is taken once.
     */
    private Object read(Args args) throws Exception {
        Open open = consumers.get(args.text("consumer"));
        long count = args.number("count", Long.MAX_VALUE);
        long quietNanos = args.number("quietMs", 5_000) * 1_000_000;
        Tallies.Tally tally = args.has("tally") ? tallies.of(args.text("tally")) : null;
        Set<String> ignored = new HashSet<>();
        args.node().path("ignoredProperties").forEach(name -> ignored.add(name.asText()));
        List<Object> shown = new ArrayList<>();
        Set<String> seen = new HashSet<>();
        long redelivered = 0;
        long heard = System.nanoTime();
        while (seen.size() < count && System.nanoTime() - heard < quietNanos) {
            Message<Object> message = open.reader().receive(STEP);
            if (message == null) {
                continue;
            }
            heard = System.nanoTime();
            if (args.flag("acknowledge", true)) {
                open.reader().acknowledge(message.id());
            }
            if (!seen.add(Inside.segmentId(message.id()) + "/" + Inside.position(message.id()))) {
                redelivered++;
                continue;
            }
            if (tally != null) {
                tally.add(Tallies.Item.read(message, open.cluster(), ignored));
            }
            if (args.flag("show", tally == null)) {
                shown.add(show(message));
            }
        }
        return Map.of("count", seen.size(), "redelivered", redelivered, "messages", shown);
    }

    private static Map<String, Object> show(Message<Object> message) throws Exception {
        Map<String, Object> shown = new LinkedHashMap<>();
        message.key().ifPresent(key -> shown.put("key", key));
        byte[] value = message.data();
        if (value != null) {
            byte[] hash = MessageDigest.getInstance("SHA-256").digest(value);
            shown.put("bytes", value.length);
            shown.put("hash", HexFormat.of().formatHex(hash));
            if (value.length <= SHOWN_BYTES) {
                shown.put("hex", HexFormat.of().formatHex(value));
            }
        }
        if (value != null && message.value() instanceof GenericRecord item) {
            Map<String, Object> fields = new LinkedHashMap<>();
            item.fields().forEach(field -> fields.put(field.name(), item.field(field)));
            shown.put("fields", fields);
        }
        shown.put("properties", message.properties());
        message.producerName().ifPresent(name -> shown.put("producerName", name));
        shown.put("sequenceId", message.sequenceId());
        message.eventTime().ifPresent(time -> shown.put("eventTimeMs", time.toEpochMilli()));
        shown.put("publishTimeMs", message.publishTime().toEpochMilli());
        message.replicatedFrom().ifPresent(cluster -> shown.put("replicatedFrom", cluster));
        shown.put("redeliveries", message.redeliveryCount());
        byte[] version = Inside.schemaVersion(message);
        if (version != null) {
            shown.put("schemaVersion", HexFormat.of().formatHex(version));
        }
        shown.put("segmentId", Inside.segmentId(message.id()));
        shown.put("at", Inside.position(message.id()));
        return shown;
    }
}

package isthmus.pulsar;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.client.api.v5.MessageId;
import org.apache.pulsar.client.api.v5.Producer;
import org.apache.pulsar.client.api.v5.ProducerBuilder;
import org.apache.pulsar.client.api.v5.async.AsyncMessageBuilder;
import org.apache.pulsar.client.api.v5.auth.PemFileKeyProvider;
import org.apache.pulsar.client.api.v5.config.BatchingPolicy;
import org.apache.pulsar.client.api.v5.config.ChunkingPolicy;
import org.apache.pulsar.client.api.v5.config.CompressionPolicy;
import org.apache.pulsar.client.api.v5.config.CompressionType;
import org.apache.pulsar.client.api.v5.config.ProducerEncryptionPolicy;

/** Producers of scalable topics, and messages that the caller describes one by one. */
final class Producers {
    /** A producer, with the kind of its values and the client that it belongs to, which is named as its cluster. */
    record Open(Producer<Object> producer, String schema, String cluster) {}

    private final Clients clients;
    private final Handles<Open> producers = new Handles<>("producer");

    Producers(Clients clients) {
        this.clients = clients;
    }

    Open get(Args args) {
        return producers.get(args.text("producer"));
    }

    void register(Map<String, Main.Command> commands) {
        commands.put("producer", this::open);
        commands.put("send", this::send);
        commands.put("flush", args -> {
            get(args).producer().async().flush().join();
            return null;
        });
        commands.put("closeProducer", args -> {
            producers.remove(args.text("producer")).producer().close();
            return null;
        });
    }

    private Object open(Args args) throws Exception {
        String schema = args.text("schema", "bytes");
        ProducerBuilder<Object> builder =
                clients.get(args).v5.newProducer(Shapes.schema(schema)).topic(args.text("topic"));
        if (args.has("producerName")) {
            builder.producerName(args.text("producerName"));
        }
        if (args.has("compression")) {
            String type = args.text("compression").toUpperCase(Locale.ROOT);
            builder.compressionPolicy(CompressionPolicy.of(CompressionType.valueOf(type)));
        }
        if (args.has("chunkBytes")) {
            int bytes = (int) args.number("chunkBytes");
            builder.chunkingPolicy(ChunkingPolicy.builder().enabled(true).chunkSize(bytes).build());
        }
        if (args.has("encryption")) {
            builder.encryptionPolicy(encryption(args.part("encryption")));
        }
        builder.batchingPolicy(batching(args));
        Producer<Object> producer = builder.create();
        producers.add(args.text("producer"), new Open(producer, schema, args.text("client")));
        return null;
    }

    private static ProducerEncryptionPolicy encryption(Args key) {
        String name = key.text("name");
        PemFileKeyProvider keys =
                PemFileKeyProvider.builder().publicKey(name, Path.of(key.text("publicKeyFile"))).build();
        return ProducerEncryptionPolicy.builder().publicKeyProvider(keys).keyName(name).build();
    }

    /** Chunks cannot be batched, so there batching is off unless it is asked for. */
    private static BatchingPolicy batching(Args args) {
        if (!args.flag("batching", !args.has("chunkBytes"))) {
            return BatchingPolicy.ofDisabled();
        }
        BatchingPolicy.Builder batching = BatchingPolicy.builder().enabled(true);
        if (args.has("batchMessages")) {
            batching.maxMessages((int) args.number("batchMessages"));
        }
        if (args.has("batchDelayMs")) {
            batching.maxPublishDelay(Duration.ofMillis(args.number("batchDelayMs")));
        }
        return batching.build();
    }

    /** Sends in the order given, waits until all are stored, and tells where. */
    private Object send(Args args) throws Exception {
        Open open = get(args);
        List<CompletableFuture<MessageId>> sent = new ArrayList<>();
        for (var node : args.node().path("messages")) {
            sent.add(message(open, new Args(node)).send());
        }
        if (args.flag("flush", true)) {
            open.producer().async().flush().join();
        }
        List<String> at = new ArrayList<>();
        for (CompletableFuture<MessageId> future : sent) {
            at.add(Inside.position(future.join()));
        }
        return Map.of("at", at);
    }

    private AsyncMessageBuilder<Object> message(Open open, Args args) throws Exception {
        AsyncMessageBuilder<Object> message = open.producer().async().newMessage();
        if (args.has("key")) {
            message.key(args.text("key"));
        }
        // Without a value it is null.
        if (args.has("text") || args.has("hex")) {
            message.value(Shapes.value(open.schema(), args));
        } else {
            message.value(null);
        }
        message.properties(args.texts("properties"));
        if (args.has("eventTimeMs")) {
            message.eventTime(Instant.ofEpochMilli(args.number("eventTimeMs")));
        }
        if (args.has("deliverAfterMs")) {
            message.deliverAfter(Duration.ofMillis(args.number("deliverAfterMs")));
        }
        if (args.has("deliverAtMs")) {
            message.deliverAt(Instant.ofEpochMilli(args.number("deliverAtMs")));
        }
        if (args.has("sequence")) {
            message.sequenceId(args.number("sequence"));
        }
        if (args.has("transaction")) {
            message.transaction(clients.transaction(args.text("transaction")));
        }
        return message;
    }
}

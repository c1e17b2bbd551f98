package isthmus.pulsar;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.RawMessage;
import org.apache.pulsar.client.impl.PulsarClientImpl;
import org.apache.pulsar.client.impl.RawReaderImpl;
import org.apache.pulsar.common.api.proto.KeyValue;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.apache.pulsar.common.protocol.Commands;

/**
 * Entries as a segment stores them, with the reader that brokers use for compaction: whole and undecoded. Of each it tells
 * two hashes: of all its bytes, and of what a replicator must not change (all but checksum, origin and the ignored properties).
 */
final class RawEntries {
    private final Clients clients;

    RawEntries(Clients clients) {
        this.clients = clients;
    }

    void register(Map<String, Main.Command> commands) {
        commands.put("raw", this::raw);
    }

    /**
     * Reads a segment from its start until {@code count} entries are there or none has come for {@code quietMs}. Does it
     * by a subscription, which is removed again.
     */
    private Object raw(Args args) throws Exception {
        long count = args.number("count", Long.MAX_VALUE);
        long quietMs = args.number("quietMs", 5_000);
        List<String> ignored = new ArrayList<>();
        args.node().path("ignoredProperties").forEach(name -> ignored.add(name.asText()));
        var client = (PulsarClientImpl) clients.get(args).classic();
        CompletableFuture<Consumer<byte[]>> subscribed = new CompletableFuture<>();
        String subscription = args.text("subscription", "raw-entries");
        RawReaderImpl reader =
                new RawReaderImpl(client, args.text("topic"), subscription, subscribed, false, false);
        Consumer<byte[]> consumer = subscribed.get(30, TimeUnit.SECONDS);
        List<Object> entries = new ArrayList<>();
        try {
            while (entries.size() < count) {
                try (RawMessage message = reader.readNextAsync().get(quietMs, TimeUnit.MILLISECONDS)) {
                    entries.add(show(message, args.flag("show", false), ignored));
                }
            }
        } catch (TimeoutException e) {
            // Nothing has come any more: that is the end.
        } finally {
            consumer.unsubscribe();
            reader.closeAsync().get(30, TimeUnit.SECONDS);
        }
        return Map.of("entries", entries);
    }

    private static Map<String, Object> show(RawMessage message, boolean whole, List<String> ignored) throws Exception {
        byte[] bytes = ByteBufUtil.getBytes(message.getHeadersAndPayload());
        ByteBuf rest = message.getHeadersAndPayload().duplicate();
        MessageMetadata metadata = Commands.parseMessageMetadata(rest);
        Map<String, Object> shown = new LinkedHashMap<>();
        shown.put("ledgerId", message.getMessageIdData().getLedgerId());
        shown.put("entryId", message.getMessageIdData().getEntryId());
        shown.put("bytes", bytes.length);
        shown.put("hash", hash(bytes));
        shown.put("messages", metadata.getNumMessagesInBatch());
        shown.put("producerName", metadata.getProducerName());
        shown.put("sequenceId", metadata.getSequenceId());
        if (metadata.hasReplicatedFrom()) {
            shown.put("replicatedFrom", metadata.getReplicatedFrom());
        }
        Map<String, String> ignoredFound = new LinkedHashMap<>();
        MessageMetadata kept = withoutOrigin(metadata, ignored, ignoredFound);
        shown.put("ignoredProperties", ignoredFound);
        shown.put("content", hash(kept.toByteArray(), ByteBufUtil.getBytes(rest)));
        if (whole) {
            shown.put("hex", HexFormat.of().formatHex(bytes));
        }
        return shown;
    }

    /** The metadata without where it came from. Written anew, so fields that Pulsar does not know are not compared. */
    private static MessageMetadata withoutOrigin(
            MessageMetadata metadata, List<String> ignored, Map<String, String> found) {
        MessageMetadata kept = new MessageMetadata();
        kept.copyFrom(metadata);
        kept.clearReplicatedFrom();
        kept.clearProperties();
        for (KeyValue property : metadata.getPropertiesList()) {
            if (ignored.contains(property.getKey())) {
                found.put(property.getKey(), property.getValue());
            } else {
                kept.addProperty().setKey(property.getKey()).setValue(property.getValue());
            }
        }
        return kept;
    }

    private static String hash(byte[]... parts) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        for (byte[] part : parts) {
            digest.update(part);
        }
        return HexFormat.of().formatHex(digest.digest());
    }
}

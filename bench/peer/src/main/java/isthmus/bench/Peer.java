package isthmus.bench;

import io.netty.buffer.ByteBuf;
import io.netty.util.concurrent.FastThreadLocalThread;
import io.netty.util.internal.PlatformDependent;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.apache.pulsar.common.allocator.PulsarByteBufAllocator;
import org.apache.pulsar.common.api.proto.CompressionType;
import org.apache.pulsar.common.api.proto.KeyValue;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.apache.pulsar.common.api.proto.SingleMessageMetadata;
import org.apache.pulsar.common.compression.CompressionCodec;
import org.apache.pulsar.common.compression.CompressionCodecProvider;
import org.apache.pulsar.common.protocol.ByteBufPair;
import org.apache.pulsar.common.protocol.Commands;
import org.apache.pulsar.common.protocol.Commands.ChecksumType;
import org.apache.pulsar.common.scalable.ScalableTopicHashing;

/**
 * The Java side of the benchmarks: does with Pulsar's own classes what a replicator does with a
 * stored entry. It reads commands from standard input, one a line, and answers each with one line
 * of JSON on standard output. All the work is done by one thread, of the kind that a broker's threads
 * are: Netty's pools and recyclers are quicker on it than on a plain one.
 */
public final class Peer {
    private static final String SOURCE_CLUSTER = "a";
    private static final String POSITION_PROPERTY = "__MSG_PROP_REPL_SOURCE_POSITION";
    private static final long SOURCE_LEDGER = 1007;
    private static final long SOURCE_ENTRY = 6;
    private static final long PRODUCER_ID = 1;
    private static final int MAX_MESSAGE_SIZE = 5 * 1024 * 1024;
    private static final int RING = 0x10000;

    /** Reused from entry to entry, as the recycled messages of the replicator reuse theirs. */
    private final MessageMetadata outer = new MessageMetadata();
    private final SingleMessageMetadata record = new SingleMessageMetadata();

    private final PrintStream answers;

    private Peer(PrintStream answers) {
        this.answers = answers;
    }

    public static void main(String[] args) throws InterruptedException {
        PrintStream answers =
                new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        // Whatever a library prints must not mix with the answers.
        System.setOut(System.err);
        Thread worker = new FastThreadLocalThread(new Peer(answers)::serve, "peer");
        worker.start();
        worker.join();
    }

    private void serve() {
        try {
            answerAll();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private void answerAll() throws IOException {
        BufferedReader commands =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            if (line.isBlank()) {
                continue;
            }
            String[] words = line.indexOf('\t') >= 0 ? line.split("\t") : line.trim().split(" +");
            String answer;
            try {
                answer = run(words);
            } catch (Exception e) {
                answer = "{\"error\":" + quoted(e.toString()) + "}";
            }
            answers.println(answer);
            answers.flush();
            if (words[0].equals("quit")) {
                return;
            }
        }
    }

    private String run(String[] words) throws IOException {
        switch (words[0]) {
            case "info":
                return info();
            case "quit":
                return "{\"quit\":true}";
            case "restamp":
                requireWords(words, 3, "restamp <file> <iterations> [<output file>]");
                return restamp(words[1], positive(words[2]), words.length > 3 ? words[3] : null);
            case "rebatch":
                requireWords(words, 4, "rebatch <file> <buckets> <iterations> [<output prefix>]");
                return rebatch(words[1], positive(words[2]), positive(words[3]),
                        words.length > 4 ? words[4] : null);
            default:
                throw new IllegalArgumentException("unknown command " + words[0]);
        }
    }

    // ---- restamp: an entry goes on as it is, with its provenance written into the metadata ----

    private String restamp(String file, int iterations, String output) throws IOException {
        ByteBuf stored = load(file);
        try {
            long bytes = 0;
            long start = System.nanoTime();
            for (int i = 0; i < iterations; i++) {
                ByteBufPair send = restampOnce(stored);
                bytes = send.readableBytes();
                send.release();
            }
            long took = System.nanoTime() - start;
            if (output != null) {
                ByteBufPair send = restampOnce(stored);
                save(send, output);
                send.release();
            }
            return String.format(Locale.ROOT, "{\"nsPerOp\":%.1f,\"bytes\":%d}",
                    (double) took / iterations, bytes);
        } finally {
            stored.release();
        }
    }

    private ByteBufPair restampOnce(ByteBuf stored) {
        // The duplicate becomes the payload half of the result and is released with it.
        ByteBuf entry = stored.retainedDuplicate();
        Commands.parseMessageMetadata(entry, outer);
        outer.setReplicatedFrom(SOURCE_CLUSTER);
        outer.clearTxnidMostBits();
        outer.clearTxnidLeastBits();
        outer.addProperty().setKey(POSITION_PROPERTY).setValue(SOURCE_LEDGER + ":" + SOURCE_ENTRY);
        return Commands.newSend(PRODUCER_ID, outer.getSequenceId(), outer.getNumMessagesInBatch(),
                ChecksumType.Crc32c, outer, entry);
    }

    // ---- rebatch: a batch is taken apart and put together again, one part for each bucket ----

    /** What is gathered for one bucket while the records of an entry are walked. */
    private static final class Group {
        ByteBuf body;
        int count;
        int hashMin;
        int hashMax;
        long sequence;
    }

    private String rebatch(String file, int buckets, int iterations, String output)
            throws IOException {
        if (buckets > 1024) {
            throw new IllegalArgumentException("at most 1024 buckets");
        }
        ByteBuf stored = load(file);
        try {
            Group[] groups = new Group[buckets];
            for (int i = 0; i < buckets; i++) {
                groups[i] = new Group();
            }
            ByteBufPair[] parts = new ByteBufPair[buckets];
            int made = 0;
            long start = System.nanoTime();
            for (int i = 0; i < iterations; i++) {
                made = rebatchOnce(stored, groups, parts);
                if (i + 1 < iterations) {
                    releaseAll(parts, made);
                }
            }
            long took = System.nanoTime() - start;
            long bytes = 0;
            int messages = 0;
            for (Group group : groups) {
                messages += group.count;
            }
            for (int i = 0; i < made; i++) {
                bytes += parts[i].readableBytes();
                if (output != null) {
                    save(parts[i], output + "." + i);
                }
            }
            releaseAll(parts, made);
            return String.format(Locale.ROOT,
                    "{\"nsPerOp\":%.1f,\"parts\":%d,\"messages\":%d,\"bytes\":%d}",
                    (double) took / iterations, made, messages, bytes);
        } finally {
            stored.release();
        }
    }

    private int rebatchOnce(ByteBuf stored, Group[] groups, ByteBufPair[] parts)
            throws IOException {
        ByteBuf entry = stored.retainedDuplicate();
        try {
            Commands.parseMessageMetadata(entry, outer);
            if (!outer.hasNumMessagesInBatch()) {
                throw new IllegalArgumentException("not a batch");
            }
            if (outer.getEncryptionKeysCount() > 0) {
                throw new IllegalArgumentException("encrypted");
            }
            CompressionType compression = outer.getCompression();
            CompressionCodec codec = CompressionCodecProvider.getCompressionCodec(compression);
            ByteBuf plain = codec.decode(entry, outer.getUncompressedSize());
            try {
                group(plain, outer.getNumMessagesInBatch(), outer.getSequenceId(), groups);
            } finally {
                plain.release();
            }
            return assemble(groups, parts, codec, compression != CompressionType.NONE);
        } finally {
            // The parsed metadata still points into the entry, so the entry outlives the parts' making.
            entry.release();
        }
    }

    private void group(ByteBuf plain, int count, long outerSequence, Group[] groups) {
        for (Group group : groups) {
            group.count = 0;
        }
        int capacity = plain.readableBytes() / groups.length * 5 / 4 + 64;
        for (int i = 0; i < count; i++) {
            int from = plain.readerIndex();
            int metadataSize = (int) plain.readUnsignedInt();
            record.parseFrom(plain, metadataSize);
            plain.skipBytes(record.getPayloadSize());
            int to = plain.readerIndex();

            int hash = bucketHash(record);
            // The highest bucket i for which floor(i * 65536 / n) is not above the hash.
            Group group = groups[((hash + 1) * groups.length - 1) / RING];
            long sequence = record.hasSequenceId() ? record.getSequenceId() : outerSequence;
            if (group.count++ == 0) {
                group.body = PulsarByteBufAllocator.DEFAULT.buffer(capacity, MAX_MESSAGE_SIZE);
                group.hashMin = hash;
                group.hashMax = hash;
                group.sequence = sequence;
            } else {
                group.hashMin = Math.min(group.hashMin, hash);
                group.hashMax = Math.max(group.hashMax, hash);
                group.sequence = Math.max(group.sequence, sequence);
            }
            group.body.writeBytes(plain, from, to - from);
        }
    }

    /** The client's own rule: the ordering key, else the text of the key, else zero. */
    private static int bucketHash(SingleMessageMetadata record) {
        byte[] key;
        if (record.hasOrderingKey()) {
            key = record.getOrderingKey();
        } else if (record.hasPartitionKey()) {
            key = record.getPartitionKey().getBytes(StandardCharsets.UTF_8);
        } else {
            return 0;
        }
        return ScalableTopicHashing.entryBucketHash(ScalableTopicHashing.murmur(key));
    }

    private int assemble(Group[] groups, ByteBufPair[] parts, CompressionCodec codec,
            boolean compressed) {
        outer.setReplicatedFrom(SOURCE_CLUSTER);
        outer.clearTxnidMostBits();
        outer.clearTxnidLeastBits();
        outer.clearCompactedBatchIndexes();
        KeyValue position = outer.addProperty().setKey(POSITION_PROPERTY);
        int made = 0;
        for (Group group : groups) {
            if (group.count == 0) {
                continue;
            }
            int plainSize = group.body.readableBytes();
            ByteBuf payload = codec.encode(group.body);
            group.body.release();
            group.body = null;

            position.setValue(SOURCE_LEDGER + ":" + SOURCE_ENTRY + ":" + made);
            outer.setSequenceId(group.sequence);
            outer.setHighestSequenceId(group.sequence);
            outer.setNumMessagesInBatch(group.count);
            if (compressed) {
                outer.setUncompressedSize(plainSize);
            }
            outer.setEntryHashMin(group.hashMin);
            outer.setEntryHashMax(group.hashMax);
            parts[made++] = Commands.newSend(PRODUCER_ID, group.sequence, group.sequence,
                    group.count, ChecksumType.Crc32c, outer, payload);
        }
        return made;
    }

    // ---- the rest ----

    private static void releaseAll(ByteBufPair[] parts, int made) {
        for (int i = 0; i < made; i++) {
            parts[i].release();
            parts[i] = null;
        }
    }

    /** Puts a stored entry where a broker has it: in a pooled buffer outside the heap. */
    private static ByteBuf load(String file) throws IOException {
        byte[] bytes = Files.readAllBytes(Path.of(file));
        return PulsarByteBufAllocator.DEFAULT.directBuffer(bytes.length).writeBytes(bytes);
    }

    private static void save(ByteBufPair send, String file) throws IOException {
        byte[] bytes = new byte[send.readableBytes()];
        int first = send.getFirst().readableBytes();
        send.getFirst().getBytes(send.getFirst().readerIndex(), bytes, 0, first);
        send.getSecond().getBytes(send.getSecond().readerIndex(), bytes, first, bytes.length - first);
        Files.write(Path.of(file), bytes);
    }

    /** Which of the slow and fast ways of the libraries this JVM and its flags have led to. */
    private static String info() {
        return "{\"java\":" + quoted(Runtime.version().toString())
                + ",\"crc32c\":" + quoted(crcImplementation())
                + ",\"nettyUnsafe\":" + PlatformDependent.hasUnsafe()
                + ",\"allocator\":" + quoted(PulsarByteBufAllocator.DEFAULT.getClass().getSimpleName())
                + ",\"memoryAddress\":" + hasMemoryAddress()
                + "}";
    }

    private static boolean hasMemoryAddress() {
        ByteBuf buffer = PulsarByteBufAllocator.DEFAULT.buffer(16);
        boolean has = buffer.hasMemoryAddress();
        buffer.release();
        return has;
    }

    private static String crcImplementation() {
        try {
            Field field = Class.forName("com.scurrilous.circe.checksum.Crc32cIntChecksum")
                    .getDeclaredField("CRC32C_HASH");
            field.setAccessible(true);
            return field.get(null).getClass().getSimpleName();
        } catch (ReflectiveOperationException | LinkageError e) {
            return "unknown";
        }
    }

    private static void requireWords(String[] words, int least, String usage) {
        if (words.length < least) {
            throw new IllegalArgumentException("usage: " + usage);
        }
    }

    private static int positive(String word) {
        int value = Integer.parseInt(word);
        if (value < 1) {
            throw new IllegalArgumentException("must be at least 1: " + word);
        }
        return value;
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (int i = 0; i < text.length(); i++) {
            char c = text.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20) {
                out.append(String.format("\\u%04x", (int) c));
            } else {
                out.append(c);
            }
        }
        return out.append('"').toString();
    }
}

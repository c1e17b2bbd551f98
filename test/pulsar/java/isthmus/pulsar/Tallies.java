package isthmus.pulsar;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.pulsar.client.api.v5.Message;

/**
 * What was sent or read, in short form, and comparisons of two of them. Two messages are the same by content when key,
 * value, properties and event time agree; as a whole when producer, sequence id and publish time do so too.
 */
final class Tallies {
    /** One message. {@code whole} is 0 for one that was sent here: only the broker's copy has all of it. */
    record Item(String origin, String key, long content, long whole, String at) {
        /** One without properties and event time, as the generator makes them. */
        static Item sent(String cluster, String key, byte[] value) {
            return new Item(cluster, key, contentHash(key, value, Map.of(), -1), 0, "");
        }

        static Item read(Message<?> message, String cluster, Set<String> ignoredProperties) {
            Map<String, String> properties = new TreeMap<>(message.properties());
            properties.keySet().removeAll(ignoredProperties);
            String key = message.key().orElse(null);
            long eventTime = message.eventTime().map(time -> time.toEpochMilli()).orElse(-1L);
            long content = contentHash(key, message.data(), properties, eventTime);
            String producer = message.producerName().orElse("");
            long publishTime = message.publishTime().toEpochMilli();
            long whole = hash(content + " " + producer + " " + message.sequenceId() + " " + publishTime);
            String at = producer + " " + message.sequenceId() + " at " + Inside.position(message.id());
            return new Item(message.replicatedFrom().orElse(cluster), key, content, whole, at);
        }

        private static long contentHash(String key, byte[] value, Map<String, String> properties, long eventTime) {
            MessageDigest digest = sha256();
            String head = (key == null ? "-" : "+" + key) + "\0" + properties + "\0" + eventTime + "\0" + (value == null);
            digest.update(head.getBytes(StandardCharsets.UTF_8));
            digest.update(value == null ? new byte[0] : value);
            return ByteBuffer.wrap(digest.digest()).getLong();
        }

        private static long hash(String text) {
            return ByteBuffer.wrap(sha256().digest(text.getBytes(StandardCharsets.UTF_8))).getLong();
        }

        long identity(boolean asWhole) {
            return asWhole ? whole : content;
        }

        String show() {
            return (key == null ? "no key" : "key " + key) + " of " + origin + ", " + at;
        }
    }

    /** Messages in the order in which they were sent or read. */
    static final class Tally {
        private final List<Item> items = new ArrayList<>();

        synchronized void addAll(List<Item> more) {
            items.addAll(more);
        }

        synchronized void add(Item item) {
            items.add(item);
        }

        synchronized List<Item> snapshot() {
            return List.copyOf(items);
        }
    }

    private final Map<String, Tally> tallies = new ConcurrentHashMap<>();

    /** The tally of a name, made when it is first needed. */
    Tally of(String name) {
        return tallies.computeIfAbsent(name, ignored -> new Tally());
    }

    void register(Map<String, Main.Command> commands) {
        commands.put("compare", args -> compare(
                of(args.text("left")).snapshot(), of(args.text("right")).snapshot(), args.flag("asWhole", false)));
        commands.put("tally", args -> summary(of(args.text("tally")).snapshot()));
        commands.put("forget", args -> {
            tallies.remove(args.text("tally"));
            return null;
        });
    }

    private static Object summary(List<Item> items) {
        Set<Long> contents = new HashSet<>();
        Set<String> keys = new HashSet<>();
        Map<String, Integer> origins = new TreeMap<>();
        for (Item item : items) {
            contents.add(item.content());
            keys.add(String.valueOf(item.key()));
            origins.merge(item.origin(), 1, Integer::sum);
        }
        return Map.of("count", items.size(), "distinct", contents.size(), "keys", keys.size(), "origins", origins);
    }

    /** How many examples are shown of each kind of difference. */
    private static final int EXAMPLES = 5;

    /** Differences as multisets, and per key and origin the order of what is in both. Unkeyed messages have no order. */
    private static Object compare(List<Item> left, List<Item> right, boolean asWhole) {
        List<String> missing = new ArrayList<>();
        List<String> extra = new ArrayList<>();
        int missingCount = surplus(left, right, asWhole, missing);
        int extraCount = surplus(right, left, asWhole, extra);
        List<String> breaks = new ArrayList<>();
        int breakCount = orderBreaks(left, right, asWhole, breaks);
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("left", left.size());
        result.put("right", right.size());
        result.put("missing", missingCount);
        result.put("extra", extraCount);
        result.put("duplicatesLeft", duplicates(left, asWhole));
        result.put("duplicatesRight", duplicates(right, asWhole));
        result.put("orderBreaks", breakCount);
        result.put("examples", Map.of("missing", missing, "extra", extra, "orderBreaks", breaks));
        return result;
    }

    /** How many of {@code items} are not in {@code others}, each counted as often as it comes. */
    private static int surplus(List<Item> items, List<Item> others, boolean asWhole, List<String> examples) {
        Map<Long, Integer> counts = new HashMap<>();
        for (Item other : others) {
            counts.merge(other.identity(asWhole), 1, Integer::sum);
        }
        int count = 0;
        for (Item item : items) {
            if (counts.merge(item.identity(asWhole), -1, Integer::sum) >= 0) {
                continue;
            }
            count++;
            if (examples.size() < EXAMPLES) {
                examples.add(item.show());
            }
        }
        return count;
    }

    private static int duplicates(List<Item> items, boolean asWhole) {
        Set<Long> seen = new HashSet<>();
        int count = 0;
        for (Item item : items) {
            count += seen.add(item.identity(asWhole)) ? 0 : 1;
        }
        return count;
    }

    /** How many keys have what is on both sides in another order; of several equal messages the first counts. */
    private static int orderBreaks(List<Item> left, List<Item> right, boolean asWhole, List<String> examples) {
        Map<String, List<Item>> leftKeys = byKey(left, right, asWhole);
        Map<String, List<Item>> rightKeys = byKey(right, left, asWhole);
        int count = 0;
        for (Map.Entry<String, List<Item>> entry : leftKeys.entrySet()) {
            List<Item> there = rightKeys.getOrDefault(entry.getKey(), List.of());
            for (int i = 0; i < entry.getValue().size(); i++) {
                Item expected = entry.getValue().get(i);
                Item found = i < there.size() ? there.get(i) : null;
                if (found != null && found.identity(asWhole) == expected.identity(asWhole)) {
                    continue;
                }
                count++;
                if (examples.size() < EXAMPLES) {
                    String instead = found == null ? "nothing" : found.show();
                    examples.add(instead + " instead of " + expected.show());
                }
                break;
            }
        }
        return count;
    }

    private static Map<String, List<Item>> byKey(List<Item> items, List<Item> others, boolean asWhole) {
        Set<Long> common = new HashSet<>();
        for (Item other : others) {
            common.add(other.identity(asWhole));
        }
        Map<String, List<Item>> keys = new LinkedHashMap<>();
        for (Item item : items) {
            if (item.key() != null && common.remove(item.identity(asWhole))) {
                keys.computeIfAbsent(item.origin() + " " + item.key(), ignored -> new ArrayList<>()).add(item);
            }
        }
        return keys;
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}

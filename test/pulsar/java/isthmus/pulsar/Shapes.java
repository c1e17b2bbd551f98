package isthmus.pulsar;

import com.fasterxml.jackson.core.JsonProcessingException;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import org.apache.pulsar.client.api.v5.schema.Schema;

/** The kinds of values that producers and consumers of the tests have, by name, and values made from arguments. */
final class Shapes {
    /** A record of the JSON schema. */
    public static class Item {
        public String text;
        public Integer number;
    }

    /** The same with one member more: a compatible step. */
    public static class WiderItem {
        public String text;
        public Integer number;
        public String more;
    }

    /** The same with a member of another type: an incompatible step. */
    public static class OtherItem {
        public String text;
        public String number;
    }

    private Shapes() {}

    @SuppressWarnings("unchecked")
    static Schema<Object> schema(String kind) {
        return (Schema<Object>) (Schema<?>) switch (kind) {
            case "bytes" -> Schema.bytes();
            case "string" -> Schema.string();
            case "json" -> Schema.json(Item.class);
            case "jsonWider" -> Schema.json(WiderItem.class);
            case "jsonOther" -> Schema.json(OtherItem.class);
            case "auto" -> Schema.autoConsume();
            default -> throw new IllegalArgumentException("no schema " + kind);
        };
    }

    /** A value of a kind: from {@code hex}, else from {@code text}, which is JSON where the kind is. */
    static Object value(String kind, Args args) throws JsonProcessingException {
        if (args.has("hex")) {
            return HexFormat.of().parseHex(args.text("hex"));
        }
        String text = args.text("text");
        return switch (kind) {
            case "bytes" -> text.getBytes(StandardCharsets.UTF_8);
            case "string" -> text;
            case "json" -> Main.JSON.readValue(text, Item.class);
            case "jsonWider" -> Main.JSON.readValue(text, WiderItem.class);
            case "jsonOther" -> Main.JSON.readValue(text, OtherItem.class);
            default -> throw new IllegalArgumentException("no values of schema " + kind);
        };
    }
}

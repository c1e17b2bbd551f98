package isthmus.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.LinkedHashMap;
import java.util.Map;

/** The arguments of a command, or of a part of one. A missing one that is needed is an error that names it. */
record Args(JsonNode node) {
    boolean has(String name) {
        return node.hasNonNull(name);
    }

    String text(String name) {
        return needed(name).asText();
    }

    String text(String name, String otherwise) {
        return has(name) ? node.get(name).asText() : otherwise;
    }

    long number(String name) {
        return needed(name).asLong();
    }

    long number(String name, long otherwise) {
        return has(name) ? node.get(name).asLong() : otherwise;
    }

    boolean flag(String name, boolean otherwise) {
        return has(name) ? node.get(name).asBoolean() : otherwise;
    }

    /** A part with arguments of its own; an absent one has none. */
    Args part(String name) {
        return new Args(node.path(name));
    }

    Map<String, String> texts(String name) {
        Map<String, String> texts = new LinkedHashMap<>();
        node.path(name).fields().forEachRemaining(field -> texts.put(field.getKey(), field.getValue().asText()));
        return texts;
    }

    private JsonNode needed(String name) {
        if (!has(name)) {
            throw new IllegalArgumentException("argument " + name + " is missing");
        }
        return node.get(name);
    }
}

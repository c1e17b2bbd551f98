package isthmus.pulsar;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Things that are open, by the name that the caller has given them. */
final class Handles<T> {
    private final String kind;
    private final Map<String, T> open = new ConcurrentHashMap<>();

    Handles(String kind) {
        this.kind = kind;
    }

    void add(String name, T thing) {
        if (open.putIfAbsent(name, thing) != null) {
            throw new IllegalArgumentException(kind + " " + name + " is open already");
        }
    }

    T get(String name) {
        return existing(name, open.get(name));
    }

    T remove(String name) {
        return existing(name, open.remove(name));
    }

    private T existing(String name, T thing) {
        if (thing == null) {
            throw new IllegalArgumentException("no " + kind + " " + name + " is open");
        }
        return thing;
    }
}

package isthmus.pulsar;

import java.lang.reflect.Method;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.MessageIdAdv;

/** What the client of scalable topics knows and does not tell: where a message is stored, and its schema's version. */
final class Inside {
    private Inside() {}

    /** {@code ledger:entry}, and {@code :index} in a batch. Chunked messages have the place of their last chunk. */
    static String position(org.apache.pulsar.client.api.v5.MessageId id) {
        MessageIdAdv at = (MessageIdAdv) (MessageId) call(id, "v4MessageId");
        String entry = at.getLedgerId() + ":" + at.getEntryId();
        return at.getBatchIndex() < 0 ? entry : entry + ":" + at.getBatchIndex();
    }

    static long segmentId(org.apache.pulsar.client.api.v5.MessageId id) {
        return (Long) call(id, "segmentId");
    }

    /** Null when the message has none. */
    static byte[] schemaVersion(org.apache.pulsar.client.api.v5.Message<?> message) {
        return ((Message<?>) call(message, "v4Message")).getSchemaVersion();
    }

    private static Object call(Object on, String name) {
        try {
            Method method = on.getClass().getDeclaredMethod(name);
            method.setAccessible(true);
            return method.invoke(on);
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }
}

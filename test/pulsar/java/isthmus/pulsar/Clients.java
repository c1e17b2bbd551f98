package isthmus.pulsar;

import java.time.Duration;
import java.util.Map;
import org.apache.pulsar.client.api.ClientBuilder;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.v5.PulsarClient;
import org.apache.pulsar.client.api.v5.PulsarClientBuilder;
import org.apache.pulsar.client.api.v5.PulsarClientException;
import org.apache.pulsar.client.api.v5.Transaction;
import org.apache.pulsar.client.api.v5.auth.AuthenticationFactory;
import org.apache.pulsar.client.api.v5.config.TransactionPolicy;

/** The clients, one of each kind for every cluster that the caller names, and the transactions that they have begun. */
final class Clients {
    /** A client of scalable topics, and one of the classic kind that is made when it is first needed. */
    static final class Client {
        final PulsarClient v5;
        private final Args access;
        private org.apache.pulsar.client.api.PulsarClient classic;

        private Client(Args access) throws PulsarClientException {
            this.access = access;
            PulsarClientBuilder builder = PulsarClient.builder().serviceUrl(access.text("serviceUrl"));
            if (access.has("token")) {
                builder.authentication(AuthenticationFactory.token(access.text("token")));
            }
            if (access.has("transactionTimeoutMs")) {
                Duration timeout = Duration.ofMillis(access.number("transactionTimeoutMs"));
                builder.transactionPolicy(TransactionPolicy.builder().timeout(timeout).build());
            }
            this.v5 = builder.build();
        }

        synchronized org.apache.pulsar.client.api.PulsarClient classic() throws Exception {
            if (classic == null) {
                ClientBuilder builder =
                        org.apache.pulsar.client.api.PulsarClient.builder().serviceUrl(access.text("serviceUrl"));
                if (access.has("token")) {
                    String token = access.text("token");
                    builder.authentication(org.apache.pulsar.client.api.AuthenticationFactory.token(token));
                }
                classic = builder.build();
            }
            return classic;
        }

        /** At once, without waiting for what is under way. */
        private synchronized void close() throws Exception {
            v5.shutdown();
            if (classic != null) {
                classic.shutdown();
            }
        }
    }

    private final Handles<Client> clients = new Handles<>("client");
    private final Handles<Transaction> transactions = new Handles<>("transaction");

    Client get(Args args) {
        return clients.get(args.text("client"));
    }

    Transaction transaction(String name) {
        return transactions.get(name);
    }

    void register(Map<String, Main.Command> commands) {
        commands.put("open", args -> {
            clients.add(args.text("client"), new Client(args));
            return null;
        });
        commands.put("close", args -> {
            clients.remove(args.text("client")).close();
            return null;
        });
        commands.put("begin", args -> {
            transactions.add(args.text("transaction"), get(args).v5.newTransaction());
            return null;
        });
        commands.put("commit", args -> {
            transactions.remove(args.text("transaction")).commit();
            return null;
        });
        commands.put("abort", args -> {
            transactions.remove(args.text("transaction")).abort();
            return null;
        });
        commands.put("classicSend", this::classicSend);
    }

    /** Sends texts to an ordinary topic with the classic client, after making a subscription on it where one is named. */
    private Object classicSend(Args args) throws Exception {
        var client = get(args).classic();
        String topic = args.text("topic");
        if (args.has("subscription")) {
            client.newConsumer().topic(topic).subscriptionName(args.text("subscription")).subscribe().close();
        }
        try (var producer = client.newProducer(Schema.STRING).topic(topic).create()) {
            long keys = args.number("keys", 8);
            for (int i = 0; i < args.number("count"); i++) {
                producer.newMessage().key("k" + i % keys).value("m" + i).sendAsync();
            }
            producer.flush();
        }
        return null;
    }
}

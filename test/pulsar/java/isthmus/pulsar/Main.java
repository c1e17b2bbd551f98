package isthmus.pulsar;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletionException;

/**
 * Pulsar's own clients for the live tests. Reads commands from standard input, one line of JSON each,
 * {@code {"id": 1, "do": "send", ...}}, and answers each by its id on standard output with
 * {@code {"id": 1, "result": {...}}} or {@code {"id": 1, "error": "...", "type": "..."}}. Commands run at the same time,
 * so that a consumer can read while a producer sends; whoever needs an order waits for the answer. The program
 * ends with its input.
 */
public final class Main {
    static final ObjectMapper JSON = new ObjectMapper();

    /** What one command does; what it returns is its result. */
    interface Command {
        Object run(Args args) throws Exception;
    }

    private final PrintStream answers;
    private final Map<String, Command> commands = new TreeMap<>();

    private Main(PrintStream answers) {
        this.answers = answers;
        Clients clients = new Clients();
        Producers producers = new Producers(clients);
        Tallies tallies = new Tallies();
        clients.register(commands);
        producers.register(commands);
        new Generator(producers, tallies).register(commands);
        new Consumers(clients, tallies).register(commands);
        tallies.register(commands);
        new RawEntries(clients).register(commands);
        new Backlog(clients).register(commands);
    }

    public static void main(String[] args) throws IOException {
        PrintStream answers = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        // Whatever a library prints must not mix with the answers.
        System.setOut(System.err);
        new Main(answers).serve();
        // The clients' own threads would keep the process alive, and closing them waits for brokers that may be gone.
        System.exit(0);
    }

    private void serve() throws IOException {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            JsonNode call = JSON.readTree(line);
            Thread.ofPlatform().daemon().start(() -> answer(call));
        }
    }

    private void answer(JsonNode call) {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("id", call.get("id"));
        try {
            Command command = commands.get(call.path("do").asText());
            if (command == null) {
                throw new IllegalArgumentException("no command " + call.path("do") + "; there are " + commands.keySet());
            }
            answer.set("result", JSON.valueToTree(command.run(new Args(call))));
        } catch (Throwable thrown) {
            Throwable cause = thrown;
            // Futures wrap what has happened, and some exceptions of the client have nothing to say themselves.
            while (cause.getCause() != null && (cause instanceof CompletionException || cause.getMessage() == null)) {
                cause = cause.getCause();
            }
            answer.put("error", String.valueOf(cause.getMessage())).put("type", cause.getClass().getSimpleName());
            thrown.printStackTrace();
        }
        synchronized (answers) {
            answers.println(answer);
            answers.flush();
        }
    }
}

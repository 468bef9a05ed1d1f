package bench;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.ObjectReader;
import com.fasterxml.jackson.databind.ObjectWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;

/**
 * Joins each record of the topic {@code payments} with the version of the table {@code rates} that was valid at the
 * record's time. Arguments: brokers, prefix of the topics, folder for state, retention of the table's history in ms,
 * {@code default} or {@code one} segment, and the processing guarantee.
 */
public final class VersionedJoin {
  public record Payment(long id, long amount) {}

  public record Rate(long rate) {}

  @JsonInclude(JsonInclude.Include.NON_NULL)
  public record Priced(long id, long amount, Long rate) {}

  private VersionedJoin() {}

  public static void main(String[] args) throws InterruptedException {
    String brokers = args[0];
    String prefix = args[1];
    String folder = args[2];
    Duration retention = Duration.ofMillis(Long.parseLong(args[3]));
    boolean oneSegment = args[4].equals("one");

    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, prefix + "app");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, folder);
    settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, args[5]);
    settings.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");

    VersionedBytesStoreSupplier store =
        oneSegment
            ? Stores.persistentVersionedKeyValueStore("rates", retention, retention)
            : Stores.persistentVersionedKeyValueStore("rates", retention);
    Serde<Rate> rate = json(Rate.class);
    Serde<Payment> payment = json(Payment.class);
    StreamsBuilder builder = new StreamsBuilder();
    KTable<String, Rate> rates =
        builder.table(
            prefix + "rates",
            Consumed.with(Serdes.String(), rate),
            Materialized.<String, Rate>as(store).withKeySerde(Serdes.String()).withValueSerde(rate));
    builder.stream(prefix + "payments", Consumed.with(Serdes.String(), payment))
        .leftJoin(
            rates,
            (left, right) -> new Priced(left.id(), left.amount(), right == null ? null : right.rate()),
            Joined.with(Serdes.String(), payment, rate))
        .to(prefix + "priced", Produced.with(Serdes.String(), json(Priced.class)));

    KafkaStreams streams = new KafkaStreams(builder.build(), settings);
    CountDownLatch ended = new CountDownLatch(1);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      streams.close();
      ended.countDown();
    }));
    streams.start();
    ended.await();
  }

  private static <T> Serde<T> json(Class<T> type) {
    ObjectMapper mapper = new ObjectMapper();
    ObjectReader reader = mapper.readerFor(type);
    ObjectWriter writer = mapper.writerFor(type);
    return Serdes.serdeFrom(
        (topic, value) -> {
          try {
            return value == null ? null : writer.writeValueAsBytes(value);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        },
        (topic, bytes) -> {
          try {
            return bytes == null ? null : reader.readValue(bytes);
          } catch (IOException error) {
            throw new UncheckedIOException(error);
          }
        });
  }
}

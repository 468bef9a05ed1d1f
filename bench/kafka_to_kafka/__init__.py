"""The versioned stream-table join from Kafka to Kafka: vsc, Kafka Streams and Quix Streams on one broker."""

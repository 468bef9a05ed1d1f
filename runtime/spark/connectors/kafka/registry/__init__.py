"""Keys and values of Kafka's records whose schemas are in a schema registry."""

"""A real Kafka broker and a real PostgreSQL on loopback: for the tests, the live example and the benchmarks.

Each server has its own folder and ports. It runs in its own session, so it does not get a terminal's Ctrl-C: whoever
starts it must stop it.
"""

"""A real Kafka broker and a real PostgreSQL on loopback: for the tests, the live example and the benchmarks.

Each server has a folder and ports of its own. A process of its own session, it does not get a terminal's Ctrl-C: who
starts it stops it.
"""

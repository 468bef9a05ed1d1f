"""What ends a query that reads from Kafka, or writes to it, in the user's words."""

from __future__ import annotations

from vsc.runtime.errors import SourceError

__all__ = ["kafka_failure"]


def kafka_failure(text: str, why: str) -> SourceError | None:
    """What Spark's `text` about a failure amounts to; `why` is its innermost cause. None if it is not Kafka's."""
    if "KAFKA_DATA_LOSS" in text or "data may have been lost" in text:
        return SourceError(
            f"Kafka no longer holds records that the checkpoint has still to read: {why}",
            "they were deleted (retention), or the topic was created again: start with a new checkpoint, or skip them: "
            "'failOnDataLoss' = 'false'",
        )
    if "KafkaRecordToRowConverter" in text and "long overflow" in text:
        return SourceError(
            "a record of Kafka has a timestamp that Spark cannot read: before the year -290308 or after 294247, as "
            "nanoseconds would be, taken for milliseconds",
            "begin behind it, with vsc upgrade and --position; message.timestamp.after.max.ms of its topic keeps such "
            "records out",
        )
    if "org.apache.kafka.common.errors" in text:
        return SourceError(f"Kafka does not answer, or refuses: {why}", "the same command continues with this epoch")
    return None

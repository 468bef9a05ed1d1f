"""The compiler: text to plan, without Spark, JVM or numerical libraries."""

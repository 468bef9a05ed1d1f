"""vsc: versioned stream topologies, compiled to Apache Spark Structured Streaming.

This package imports nothing, so that ``vsc check`` starts fast. Its parts:

* ``vsc.compiler``: text to plan. Needs neither Spark nor a JVM.
* ``vsc.plan``: the plan, the one seam between compiler and runtime. Standard library only.
* ``vsc.runtime``: the plan's operators, their state, and how they run on Spark.
* ``vsc.testing``: the test driver, without a JVM.
"""

__version__ = "0.1.0"

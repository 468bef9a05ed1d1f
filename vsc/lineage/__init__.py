"""What a topology reads and writes, as OpenLineage tells it: datasets, and for each column that a sink writes the
columns of sources that it depends on.

`columns` finds these in a plan, `datasets` names where sources read and sinks write, `events` is the JSON. What sends
events while a query runs is `vsc.runtime.spark.report.lineage`. Not for whether a changed topology means the same: that
is `vsc.changes`.
"""

"""Tables whose history is complete (KIP-914, "Attempt 2"): what joins of tables and aggregates have in common there.

A change of a versioned table is a row on an interval, from its own time until that of its key's next version
(`Flow.until`). `intervals` divides such intervals; each operation says what holds on the parts, as `pieces`, and what
of them changes the table goes out. `join` is the join by primary key, `answers` the right side of one by a foreign key;
`aggregate.groups.complete_groups` does the same for aggregates.
"""

"""The functions of aggregates: their calls, what they keep of a group, on whole columns and value by value."""

"""Every operator record by record, over the stores that are shipped: the oracle of a stage."""

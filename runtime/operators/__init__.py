"""The operators of a plan, each in the module or folder of its name; `tests/oracle/records` has those for one record."""

"""The operators of a plan, each in the module or folder of its name; `tests/oracle/records` has them for one record."""

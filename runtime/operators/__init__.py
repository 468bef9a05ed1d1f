"""The operators of a plan, each in the module or folder of its name; for one record they are `tests/oracle/records`."""

"""The operators of a plan: record by record, which is their meaning, and on whole columns, which is their speed."""

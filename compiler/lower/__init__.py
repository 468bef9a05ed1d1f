"""Lowering: from a checked topology to the plan. Cannot fail: if it could, a pass is missing."""

"""Cohorts: tables and sequences, the slots in them that may change, and what a model is given of them."""

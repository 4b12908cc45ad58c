"""Cohort files: Parquet and CSV, tables and sequences."""

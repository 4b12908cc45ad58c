"""Cohorts: tables and sequences, their slots (positions that may change), and the inputs that models get from them."""

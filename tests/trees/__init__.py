"""Tests of tree ensembles."""

"""Job files: read, checked, written."""

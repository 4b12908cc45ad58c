"""scikit-learn models, converted to torch."""

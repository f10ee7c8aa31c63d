"""prme-ray."""

"""What owns bytes: the log, its projections, the resident owners, locks and the encoder's files."""

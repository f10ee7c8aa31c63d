"""What is kept of every retrieval: the record, and what is made of it when somebody reads it."""

"""Pure stages of the retrieval pipeline, one a file: Arrow tables in, Arrow tables out."""

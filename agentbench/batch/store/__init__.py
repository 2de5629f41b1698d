"""Where the rows of batches are stored: in memory, in an SQLite file, or on a PostgreSQL server."""

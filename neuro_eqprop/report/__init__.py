"""One self-contained HTML page from a run folder."""

"""The claims of the research notes as runnable tests with verdicts."""

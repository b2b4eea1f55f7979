"""What runs mean: agreement, joules, the report."""

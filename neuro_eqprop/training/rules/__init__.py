"""Update rules, one in each file."""

"""The experiments of the claims: pure functions of arguments and a seed."""

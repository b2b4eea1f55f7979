"""The functions that cells run: pure functions of arguments and a seed."""

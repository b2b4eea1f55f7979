"""What cells compute: pure functions of arguments and a seed."""

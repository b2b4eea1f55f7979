"""The networks that the child process of a run on Lava builds, one module for each form."""

"""C99 for microcontrollers and high-level synthesis: the integer step of `spiking.ir` as source."""

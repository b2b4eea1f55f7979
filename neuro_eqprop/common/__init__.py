"""Types of arrays, errors, units, settings, plug-ins and compilation, which all rooms use."""

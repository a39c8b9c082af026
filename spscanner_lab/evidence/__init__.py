"""Documents whose evidence is known: their file format, sampling, metrics and calibration."""

"""Documents whose evidence is known: files, samples, metrics and calibration."""

"""The stages of training: their losses, validation and calibration."""

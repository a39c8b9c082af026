"""Tables, plots and pages of an evaluation, from one table model."""

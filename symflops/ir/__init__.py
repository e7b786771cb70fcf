"""Types shared by all stages: specs, graphs, contractions, regimes, conventions, and programs with their stored form."""

"""The types that stages hand on: specs, graphs, contractions, regimes and conventions, and programs with their stored form."""

"""What everything stands on: diagnostics with places, YAML nodes, expressions, names."""

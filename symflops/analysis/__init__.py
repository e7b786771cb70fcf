"""Analysis of costs: differences between models and conventions, growth, budgets. Prints nothing."""

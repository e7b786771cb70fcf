"""Questions about models: how batches, models and conventions differ, how costs grow, what fits a budget. Prints nothing."""

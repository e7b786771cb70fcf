"""Questions that closed forms answer: a size at a budget, the cost of one more, the causes of a difference."""

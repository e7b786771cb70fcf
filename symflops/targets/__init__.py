"""Output languages: one file and one template each, printed from the one Program."""

"""Thin adapters from the frameworks that hold the lengths to a meter or an estimator."""

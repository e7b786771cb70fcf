"""Thin adapters between training frameworks and a meter or an estimator."""

"""Thin adapters that connect training frameworks to a meter or an estimator."""

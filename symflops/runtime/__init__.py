"""What runs beside a training job: sizes from configs, moments from batches, estimators. Nothing here imports sympy."""

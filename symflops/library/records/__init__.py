"""Records stored with specs: measured cases, censuses of classes, known inexact cases, and sizes of published models."""

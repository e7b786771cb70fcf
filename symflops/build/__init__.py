"""build: Spec -> Graph. Expands blocks, resolves names, infers widths and streams, cuts and unrolls repeats.

Nothing here knows a regime's semantics, a convention, or an output language.
Public function: :func:`symflops.build.build.build`.
"""

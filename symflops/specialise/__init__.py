"""Programs of which some sizes are known.

specialise: :class:`~symflops.model.program.Program`, values of sizes -> the program with them substituted and folded.
"""

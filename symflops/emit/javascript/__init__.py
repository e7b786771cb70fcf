"""The JavaScript target: an estimator over BigInt for a page without a server.

What other languages share belongs to ``emit.code``.
No HTML belongs here.
"""

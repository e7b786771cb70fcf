"""The JavaScript target: an estimator over BigInt for a page without a server.

Code shared with other languages belongs to ``emit.code``, HTML to ``emit.html``.
"""

"""Drafts: a spec from a real module. The only part beside the witness that runs torch."""

"""The census of a class's config: which fields a spec describes, which have no effect, and which it must refuse."""

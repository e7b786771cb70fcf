"""Tests inside of the real frameworks, which ``.ci/clients`` installs; the default run leaves them out (``elsewhere``)."""

"""What a spec was verified against, as ``symflops verify --save`` wrote it down beside the specs."""

from __future__ import annotations

import json

from symflops.ground.diagnostics import SymflopsError
from symflops.library import SpecFile
from symflops.model.verification import Verification, VerifiedCase

FILE = "verified.json"


def verifications(file: SpecFile) -> tuple[Verification, ...]:
    """The entries of ``verified.json`` about one spec; none where there is no such file.

    Raises:
        SymflopsError: the file is damaged.
    """
    path = file.root / FILE
    if not path.is_file():
        return ()
    try:
        entries = json.loads(path.read_text("utf-8")).get("specs", {}).get(file.name, [])
        return tuple(
            Verification(
                entry["reference"], entry["version"], entry["torch"], tuple(VerifiedCase(**case) for case in entry["cases"])
            )
            for entry in entries
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SymflopsError(f"{path}: not what 'symflops verify --save' writes ({error})") from None

"""What generated modules share: they import it from the runtime, or, stand-alone, hold the same text."""

from __future__ import annotations

import inspect
import re
from functools import cache

from symflops.runtime import census, classes, config, module, module_batch, module_estimator, module_moments, module_sizes

MARK = "# ---- what modules that stand alone hold, too\n"
PARTS = (config, census, classes, module_batch, module_sizes, module_moments, module_estimator, module)
FUNCTIONS = {"_Null": "NullList"} | {f"_{name}": name for name in ("each", "exact", "largest", "least", "most", "numbers")}
"""What formulas call, by the name that they use: no letter of a spec shadows it."""

IMPORTS = """from symflops.runtime.module import ...

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from symflops.runtime.module_batch import Axes, Columns, Streams
    from symflops.runtime.module_sizes import Counts, Rows"""

ALONE = """import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Generic, TypeVar

ConfigError = ValueError
"""


def with_imports(text: str) -> str:
    """The text of a module that imports what it uses of the machinery, and nothing else."""
    head, _, rest = text.partition("from symflops.runtime.module import ...\n")
    names = ["Flops", "ModelEstimator", "ModelMoments", "ModelSizes"]
    names += ["OtherStructure"] if '"OtherStructure"' in rest else []
    names += [f"{name} as {own}" for own, name in FUNCTIONS.items() if re.search(rf"\b{own}\b", rest)]
    return f"{head}from symflops.runtime.module import {', '.join(names)}\n{rest}"


@cache
def machinery() -> str:
    """What a module holds that stands alone."""
    texts = [MARK.join(inspect.getsource(part).split(MARK)[1:]).strip() for part in PARTS]
    return "\n\n\n".join([ALONE.strip(), *texts, "\n".join(f"{own} = {name}" for own, name in FUNCTIONS.items())])

"""Names of values: short words from the paths of modules, each given once."""

from __future__ import annotations

AFFIXES = ("to_", "_proj", "proj_")
NO_NAMES = ("y", "n", "on", "off", "no", "yes", "true", "false", "null", "once", "_")  # YAML or symflops reads these otherwise


class ValueNames:
    """The names that a draft has given to values."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    def fresh(self, base: str) -> str:
        """A new name after the last word of a path."""
        short = shortened(base)
        found, number = short, 2
        while found in self.taken:
            found, number = f"{short}{number}", number + 1
        self.taken.add(found)
        return found


def shortened(path: str) -> str:
    """The last word of a path as an identifier in small letters."""
    words = [word for word in path.split(".") if word and not word.isdigit()]
    text = (words[-1] if words else "v").lower()
    for affix in AFFIXES:
        text = text.replace(affix, "") or text
    text = identifier(text, "").strip("_") or "v"
    return f"v_{text}" if text[0].isdigit() or text in NO_NAMES else text


def identifier(name: str, other: str = "_") -> str:
    """A name in which all but letters, digits and underscores is replaced."""
    return "".join(letter if letter.isalnum() or letter == "_" else other for letter in name)

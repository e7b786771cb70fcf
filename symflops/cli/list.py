"""Lists the specs: name, group, the streams of a batch, the classes that a spec describes, and its variants."""

from __future__ import annotations

import argparse

from symflops.cli.arguments import JSON, arguments_of

configure = arguments_of(
    JSON,
)


def run(args: argparse.Namespace) -> int:
    """Print the specs."""
    from symflops.catalog.catalog import assumed
    from symflops.catalog.lookup import catalogs, class_name

    found = {name: entry for catalog in reversed(catalogs()) for name, entry in catalog.specs.items()}
    if args.json:
        import json

        print(json.dumps({"schema": 1, "specs": found}, indent=1, sort_keys=True))
        return 0
    width = max((len(name) for name in found), default=0)
    for name, entry in sorted(found.items(), key=lambda item: (item[1]["group"], item[0])):
        classes = ", ".join(class_name(reference) for reference in entry["references"])
        streams = " ".join(f"{stream}[{','.join(axes)}]" for stream, axes in entry["streams"].items())
        variants = ", ".join(variant for variant in entry.get("structures", ()) if variant != "default")
        print(f"{name:<{width}}  {entry['group']:<10}  {streams:<24}  {classes}{f' ({variants})' if variants else ''}")
    print("\nstructures that frameworks take models for, by name alone:")
    for name, entry in sorted(assumed().specs.items()):
        streams = " ".join(f"{stream}[{','.join(axes)}]" for stream, axes in entry["streams"].items())
        print(f"{name:<{width}}  {entry['group']:<10}  {streams:<24}  {entry['title']}")
    return 0

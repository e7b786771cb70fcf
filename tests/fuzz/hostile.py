"""A folder of a stranger: whatever is looked for in the current folder, or beside a file, is there and is code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.fuzz.cases import SMALL_SPEC
from tests.fuzz.mutators import INJECTIONS, SENTINEL

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
MODULES = (
    "symflops", "sympy", "yaml", "ruamel", "jinja2", "networkx", "mpmath", "numpy", "torch", "matplotlib", "sitecustomize", "usercustomize", "conftest", "setup", "_virtualenv",
    "json", "pickle", "socket", "struct", "signal", "queue", "copyreg", "threading", "multiprocessing", "subprocess", "tempfile", "typing", "argparse", "csv", "decimal", "fractions",
    "modeling_x", "configuration_x", "mine", "evil", "antigravity", "readline", "gettext", "locale", "encodings",
)  # fmt: skip
CODE = "import os\nopen(os.path.join({folder!r}, 'ran-{name}'), 'w').close()\n" + f"{SENTINEL} = 1\n"
TEX = f"\\immediate\\write18{{touch {SENTINEL}}}\\immediate\\openout15={SENTINEL}\n"
PERL = f"system('touch {SENTINEL}'); $pdflatex = 'touch {SENTINEL}';\n"
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
    "auto_map": {"AutoConfig": "configuration_x.XConfig", "AutoModelForCausalLM": "modeling_x.XForCausalLM"}, "custom_pipelines": {"x": {"impl": "evil.X", "pt": ["AutoModel"]}},
    "transformers_version": "__import__('os')", "torch_dtype": INJECTIONS[0], "_name_or_path": "../evil",
}  # fmt: skip


def text(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, "utf-8")
    return path


def plant(folder: Path) -> dict[str, list[Any]]:
    """Fill ``folder``, and name what is in it that commands can be told to read, by kind."""
    for place in (folder, folder / "specs" / "nn", folder / "generated", folder / "model"):
        for name in MODULES:
            text(place / f"{name}.py", CODE.format(folder=str(folder), name=name))
    for name in ("sympy", "symflops", "llama"):
        text(folder / name / "__init__.py", CODE.format(folder=str(folder), name=f"{name}-package"))
    for name in ("sympy", "json"):
        (folder / "__pycache__").mkdir(exist_ok=True)
        (folder / "__pycache__" / f"{name}.cpython-311.pyc").write_bytes(b"\xa7\r\r\n" + bytes(12) + b"\xe3")
    text(folder / "x.pth", f"import os; os.system('touch {SENTINEL}')\n")
    text(folder / "pyvenv.cfg", f"home = {folder}\n")
    text(folder / "matplotlibrc", "text.usetex: True\nbackend: module://evil\ntext.latex.preamble: \\immediate\\write18{touch x}\n")
    for name in ("latexmkrc", ".latexmkrc", "LatexMk"):
        text(folder / name, PERL)
    for name in ("article.cls", "amsmath.sty", "texmf.cnf", "texmf/tex/latex/base/article.cls", "texsys.cfg", "small.aux", "small.tex"):
        text(folder / name, TEX)
    catalogs(folder)
    return {"specs": specs(folder), "configs": configs(folder), "regimes": regimes(folder), "conventions": conventions(folder), "records": records(folder), "csv": profiles(folder)}


def catalogs(folder: Path) -> None:
    """A catalog and programs of the folder that hide the shipped ones, with Python beside them."""
    entry = {"group": "../../evil", "title": "x", "references": ["transformers.LlamaForCausalLM"], "model_types": ["llama"], "pipelines": [], "streams": {"text": ["x"]}, "structures": {}, "crc32": 0}
    forged = {"schema": 1, "specs": {"llama": {**entry, "group": "language"}, "../evil": entry, "evil": entry, "os": {**entry, "group": ""}}}
    text(folder / "generated" / "catalog.json", json.dumps(forged))
    text(folder / "generated" / "manifest.json", json.dumps({"schema": 1, "specs": [], "inputs": 3, "outputs": {"../../x": "0"}}))
    text(folder / "generated" / ".stamp.json", json.dumps({"specs/nn/small.yaml": {"code": "x", "outputs": {"/etc/passwd": "0"}}}))
    for name in ("language/llama", "language/__init__", "nn/small", "evil"):
        text(folder / "generated" / f"{name}.py", CODE.format(folder=str(folder), name=f"generated-{name.replace('/', '-')}"))
    program = json.loads((ROOT / "generated" / "language" / "llama.json").read_text("utf-8"))
    text(folder / "generated" / "language" / "llama.json", json.dumps(program | {"title": INJECTIONS[0], "references": ["evil:X"]}))


def specs(folder: Path) -> list[str]:
    """Specs of the folder: benign ones, and some whose texts are code."""
    root = folder / "specs"
    for name in ("linear", "small"):
        body = SMALL_SPEC if name == "small" else (ROOT / "specs" / "nn" / "linear.yaml").read_text("utf-8")
        text(root / "nn" / f"{name}.yaml", body.replace("name: small\n", 'name: small\nreference: "mine:Net"\n'))
    shutil.copy(ROOT / "specs" / "nn" / "linear.cases.yaml", root / "nn" / "small.cases.yaml")
    shutil.copytree(ROOT / "specs" / "blocks", root / "blocks")
    for name in ("verified", "published"):
        text(folder / "library" / "specs" / f"{name}.json", json.dumps({"specs": {"small": [{"reference": INJECTIONS[0]}]}}))
    shutil.copytree(root / "nn", folder / "library" / "specs" / "nn")
    found = ["specs/nn/small.yaml", "llama", "library/specs/nn/small.yaml"]
    for number, attack in enumerate(INJECTIONS):
        quoted = json.dumps(attack)
        body = SMALL_SPEC.replace("name: small", f"name: bad{number}\ntitle: {quoted}\nreference: {quoted}").replace("default: 8}", f"default: {quoted}, doc: {quoted}}}")
        found.append(text(folder / "bad" / f"bad{number}.yaml", body).relative_to(folder).as_posix())
    found.append(text(folder / "bad" / "tag.yaml", f"!!python/object/apply:os.system ['touch {SENTINEL}']\n").relative_to(folder).as_posix())
    found.append(text(folder / "bad" / "titled.yaml", SMALL_SPEC.replace("name: small", f"name: titled\ntitle: {json.dumps(INJECTIONS[0])}").replace("latex", "l")).relative_to(folder).as_posix())
    return found


def configs(folder: Path) -> list[str]:
    """Configs as a hub has them, with code beside them."""
    text(folder / "model" / "config.json", json.dumps(CONFIG))
    text(folder / "pipeline" / "model_index.json", json.dumps({"_class_name": ["evil", "Pipeline"], "transformer": ["evil", "LlamaForCausalLM"], "unet": ["diffusers", "UNet2DConditionModel"]}))
    text(folder / "pipeline" / "transformer" / "config.json", json.dumps(CONFIG))
    found = ["model", "pipeline", "pipeline/model_index.json"]
    for number, attack in enumerate(INJECTIONS):
        for field in ("architectures", "hidden_size", "hidden_act", "model_type"):
            config = {**CONFIG, field: [attack] if field == "architectures" else attack}
            found.append(text(folder / "configs" / f"{field}{number}.json", json.dumps(config)).relative_to(folder).as_posix())
    return found


def regimes(folder: Path) -> list[str]:
    """Regimes by page and by line."""
    pages = {"fine": "name: fine\nadapters: [{targets: ['*q_proj', '*v_proj'], rank: 4}]\n"}
    pages |= {f"r{number}": f"name: {json.dumps(attack)}\ntrain: [{json.dumps(attack)}, '*']\nlenient: true\n" for number, attack in enumerate(INJECTIONS)}
    found = [text(folder / "regimes" / f"{name}.yaml", body).relative_to(folder).as_posix() for name, body in pages.items()]
    return [*found, "lora:r=8,targets=*q_proj", f"lora:targets={INJECTIONS[0]}", "../evil", "full"]


def conventions(folder: Path) -> list[str]:
    """Conventions by page."""
    pages = {"fine": "name: fine\npairs: useful\nroles: {norm: {count: no}}\n"}
    pages |= {f"c{number}": f"name: {json.dumps(attack)}\nlinks: [{json.dumps(attack)}]\ndoc: {json.dumps(attack)}\n" for number, attack in enumerate(INJECTIONS)}
    return [text(folder / "conventions" / f"{name}.yaml", body).relative_to(folder).as_posix() for name, body in pages.items()] + ["torch"]


def records(folder: Path) -> list[str]:
    """Measured records and other frameworks' figures, fine and not."""
    for name in ("Linear", "LSTMCell"):
        (folder / "records").mkdir(exist_ok=True)
        shutil.copy(DATA / "truth" / f"{name}.json", folder / "records")
    first = json.loads((DATA / "truth" / "Linear.json").read_text("utf-8"))[0]
    for number, attack in enumerate(INJECTIONS):
        bad = [{**first, "id": attack, "package": attack, "class": name, "config_json": {**first["config_json"], "in_features": attack}} for name in ("Linear", attack)]
        text(folder / "badrecords" / f"{number}.json", json.dumps(bad))
    for name in ("verl", "litgpt", "trl"):
        some = json.loads((DATA / "peers" / f"{name}.json").read_text("utf-8"))[:4]
        strange = [{**record, "config": {**record.get("config", {}), "hidden_size": attack, "model_type": attack}} for record, attack in zip(some, INJECTIONS, strict=False)]
        text(folder / "peers" / f"{name}.json", json.dumps(some + strange))
    text(folder / "peers" / f"{SENTINEL}.json", json.dumps([{"flops": 1, "system": "../../evil"}]))
    return ["records", "badrecords", "peers"]


def profiles(folder: Path) -> list[str]:
    """Profiles of a device."""
    tables = {"fine": "Name,aic_cube_fops\na,12\nb,N/A\n", "bad": f"aic_cube_fops\n=cmd|' /C calc'!A0\n{INJECTIONS[0]}\n"}
    return [text(folder / "csv" / f"{name}.csv", body).relative_to(folder).as_posix() for name, body in tables.items()]

"""The benchmark runs, and its rivals count what they are said to. Only ``python benchmarks/speed.py`` itself looks at a clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "benchmarks" / "speed.py"
FILES = {
    "megatron-lm": "def other():\n    broken\n\n\ndef num_floating_point_operations(args, batch_size, squares=None, tokens=None):\n"
    "    return 6 * tokens * args.hidden_size if args.q_lora_rank is None and not is_hybrid_model(args) else 0\n",
    "verl": "from verl.utils.device import get_torch_device\n\n\nclass FlopsCounter:\n    def __init__(self, config):\n        self.config = config\n\n"
    "    def estimate_flops(self, lengths, seconds):\n        return self.config.hidden_size * sum(lengths), get_torch_device().get_device_name()\n",
}


@pytest.fixture
def speed(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import speed

    monkeypatch.setattr(speed.peers, "text_of", lambda name, checkouts: FILES[name])
    return speed


@pytest.mark.thorough
def test_every_row_runs_and_a_missed_limit_is_told(speed, monkeypatch, capsys):
    """With a clock of its own: each run takes a second, so that a limit below 1 is missed."""
    monkeypatch.setattr(speed, "timed", lambda work, number: (work(), 1.0)[1])
    monkeypatch.setattr(speed, "ROUNDS", 1)
    monkeypatch.setattr("sys.argv", ["speed.py", "--quick", "--json"])
    assert speed.main() == 1
    rows = json.loads(capsys.readouterr().out)
    times = [row for row in rows if row["unit"] == "s"]
    assert {row["ours"] for row in times} == {row["theirs"] for row in times} == {1.0}
    kernels, waits = (row["ours"] for row in rows if row["unit"] != "s")
    assert 1 <= kernels <= 8 and waits == 0
    assert {row["rival"] for row in rows} >= {"Megatron-LM", "verl", "`moments`", "`view(uint8).sum`", "`numpy.diff`", "Horner", "Horner in blocks", "libyaml"}
    assert len(rows) in (22, 24)  # with a C compiler two more


def test_rivals_are_the_functions_of_their_files(speed):
    assert speed.peers.megatron({})(speed.MEGATRON, 8, 0, 7) == 6 * 7 * 4096
    assert speed.peers.verl({}, speed.AutoConfig.for_model("llama")).estimate_flops([3, 4], 1.0) == (7 * 4096, "CPU")


def test_the_loops_in_c_count_what_estimators_sum_up(speed, tmp_path):
    library = speed.compiled(str(tmp_path))
    assert library is not None
    x, y, out = speed.np.arange(1, 9000), speed.np.arange(8999), speed.np.zeros(6, speed.np.int64)
    at = [speed.ctypes.c_void_p(array.ctypes.data) for array in (x, y, out)]
    library.windowed(at[0], speed.ctypes.c_int64(8999), speed.ctypes.c_int64(4096), at[2])
    columns = (x, speed.np.minimum(x, 4096), speed.np.minimum(x, 2048))
    assert out.tolist() == [int(some.sum()) for column in columns for some in (column, column * column)]
    library.pairs(at[0], at[1], speed.ctypes.c_int64(8999), at[2])
    assert out[:5].tolist() == [int(some.sum()) for some in (x, y, x * x, x * y, y * y)]


def test_a_checkout_is_named_and_there(speed, tmp_path):
    assert speed.peers.checkouts_in([f"verl={tmp_path}"]) == {"verl": str(tmp_path)}
    for words in ([f"verl={tmp_path}/none"], [f"other={tmp_path}"], ["verl"]):
        with pytest.raises(SystemExit, match="--source takes NAME=DIR"):
            speed.peers.checkouts_in(words)


def test_the_table_of_speed_is_an_output_of_the_benchmark(speed):
    """The rows, their rivals and limits; seconds are those of one run. README has four of them."""
    lines = [line for line in (ROOT / "docs" / "speed.md").read_text("utf-8").splitlines() if line.startswith("| ")]
    source = SCRIPT.read_text("utf-8")
    shown = lines[lines.index("| work | rival | rival's | ours | ratio | at most |") + 1 :][:27]
    assert len(shown) == 27 and all(line.count("|") == 7 for line in shown)
    assert all(line.split("|")[2].strip() in source for line in shown)
    readme = (ROOT / "README.md").read_text("utf-8").partition("## Speed")[2].partition("## ")[0]
    few = [line.split("|")[1:5] for line in readme.splitlines() if line.startswith("| ")][1:]
    assert len(few) == 4 and all(row in [line.split("|")[1:5] for line in shown] for row in few)

"""Sums over micro-batches: every form of lengths, no wait for a device, one vector over processes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from symflops.evaluate import boundaries
from symflops.evaluate.lengths import LengthError, of_cu_seqlens, of_mask, of_nested, of_position_ids, of_rows, same
from symflops.library import lookup
from symflops.training.meter.accumulate import Accumulator
from symflops.training.meter.batches import packed

PEER = json.loads((Path(__file__).resolve().parents[1] / "data" / "peers" / "megatron_bridge_accumulate.json").read_text())


@pytest.fixture(autouse=True, params=["cpu", "none"])
def host(request, monkeypatch):
    """Tensors of the host are read at once; with another name of it they are treated as those of a device are."""
    monkeypatch.setattr(boundaries, "HOST", request.param)
    return request.param == "cpu"


def estimator(name, **options):
    return lookup.estimator(lookup.by_name(name), name, {}, **options)[1]


LLAMA = estimator("llama")


def sums(one=LLAMA, **streams):
    accumulator = Accumulator(one)
    accumulator.add(**streams)
    return accumulator.read()


def moments(lengths, one=LLAMA):
    return tuple(one.moments(text=lengths).as_dict().values())


FORMS = [list, lambda values: np.array(values, np.int32), lambda values: torch.tensor(values, dtype=torch.int32)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("boundaries", "lengths"),
    [([0, 10, 30], [10, 20]), ([0, 10, 30, -1, -1], [10, 20]), ([0, 10, 30, 0, 0], [10, 20]), ([0, 10, 10, 30], [10, 0, 20]), ([0], []),
     ([0, 65536, 131072], [65536, 65536]), ([5, 10], [5])],
)  # fmt: skip
def test_boundaries(form, boundaries, lengths):
    assert sums(text=of_cu_seqlens(form(boundaries))).real == moments(lengths)


@pytest.mark.parametrize("form", FORMS)
def test_boundaries_without_padding(form):
    found = sums(text=of_cu_seqlens(form([0, 512, 1024, -1]), form([0, 500, 1001, -1])))
    assert found.real == moments([500, 501]) and found.padded == moments([512, 512])
    assert sums(text=of_cu_seqlens(form([0, 10, 30, 99]), valid=3)).real == moments([10, 20])
    with pytest.raises(LengthError, match="unpadded"):
        of_cu_seqlens(form([0, 1, 2]), form([0, 1]))
    with pytest.raises(LengthError, match="boundary"):
        of_cu_seqlens(form([]))


@pytest.mark.parametrize("form", FORMS)
def test_masks_and_positions(form):
    mask = [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]
    found = sums(text=of_mask(form(mask)))
    assert found.real == moments([2, 4, 0]) and found.padded == moments([4, 4, 4])
    assert sums(text=of_position_ids(form([[0, 1, 2, 0, 1, 0, 0, 1]]))).real == moments([3, 2, 1, 2])
    assert sums(text=of_position_ids(form([0, 1, 2, 3]))).real == moments([4])
    assert sums(text=of_position_ids(form([[0, 1, 2], [3, 4, 5], [0, 1, 0]]))).real == moments([3, 3, 2, 1])
    assert sums(text=of_position_ids(form([[7, 8, 9, 0, 1]]))).real == moments([3, 2])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors():
    rows = [torch.zeros(3, 4), torch.zeros(0, 4), torch.zeros(5, 4)]
    assert sums(text=of_nested(torch.nested.nested_tensor(rows, layout=torch.jagged))).real == moments([3, 0, 5])
    assert sums(text=of_nested(torch.nested.nested_tensor(rows))).real == moments([3, 0, 5])
    with pytest.raises(LengthError, match="nested"):
        of_nested(torch.zeros(3))


def test_dense_batches_and_lists():
    assert sums(text=same(3, 4096)).real == sums(text=[4096] * 3).real == moments([4096] * 3)
    assert sums(text=same(0, 4096)).real == sums(text=[]).real == sums(text=torch.zeros(0, dtype=torch.int64)).real == moments([])
    assert sums(text=same(2, 10, padded=(16,))).padded == moments([16, 16])
    with pytest.raises(LengthError):
        same(-1, 10)


@pytest.mark.parametrize("case", PEER, ids=lambda case: case["case"])
def test_cases_of_megatron_bridge(case):
    """Sums of tokens (padded ones, there) and of squares of the attended lengths; a context-parallel slice says the whole length."""
    state, arguments = case["state"], case["args"]
    if not state:
        assert arguments["vp_stage"] > 0  # only the first virtual stage adds its micro-batches: the others call nothing
        return
    boundaries = {name: torch.tensor(value) for name, value in arguments.items() if name.startswith("cu_seqlens")}
    batch, length = case["tokens_shape"]
    found = sums(text=packed(boundaries, torch.zeros(batch, length)) if boundaries else same(batch, arguments.get("config_seq_len", length)))
    moment = {side: dict(zip(LLAMA.moment_sets, getattr(found, side), strict=True)) for side in ("real", "padded")}
    assert (moment["padded"]["x"], moment["real"]["xx"]) == (state["_flops_seqlen_sum"], state["_flops_seqlen_sq_sum"])
    if "cross_cu_seqlens" in arguments:
        cross = estimator("pixart")
        lengths = of_cu_seqlens(torch.tensor(arguments["cross_cu_seqlens"]))
        assert int(lengths.axes[0].sum()) == state["_flops_cross_seqlen_sum"]
        pairs = sum(x * y for x, y in zip([100, 50], lengths.axes[0].tolist()))
        assert pairs == state["_flops_cross_seqlen_product_sum"] and cross is not None


def test_several_streams_and_index_sets():
    image = estimator("qwen_image")
    found = sums(image, latent=torch.tensor([1024, 4096]), prompt=of_mask(torch.tensor([[1, 1, 0], [1, 0, 0]])))
    assert found.real == tuple(image.moments(latent=[1024, 4096], prompt=[2, 1]).as_dict().values())
    assert found.padded == tuple(image.moments(latent=[1024, 4096], prompt=[3, 3]).as_dict().values())
    mixed = sums(image, latent=same(2, 1024), prompt=torch.tensor([7, 9]))
    assert mixed.real == tuple(image.moments(latent=[1024, 1024], prompt=[7, 9]).as_dict().values())
    vision = estimator("qwen2_vl")
    grid = torch.tensor([[1, 4, 8], [2, 8, 8]], dtype=torch.int32)
    found = sums(vision, text=torch.tensor([100]), images=of_rows(grid, 3))
    assert found.real == tuple(vision.moments(text=[100], images=[[1, 4, 8], [2, 8, 8]]).as_dict().values())
    assert sums(vision, text=torch.tensor([100])).real == tuple(vision.moments(text=[100]).as_dict().values())
    for wrong in ({"latent": [1], "prompt": [1, 2]}, {"latents": [1]}, {"latent": [[1, 2]], "prompt": [1]}, {"latent": 3, "prompt": [1]}):
        with pytest.raises(LengthError):
            sums(image, **wrong)


def test_faults_are_counted_where_they_cannot_be_raised(host):
    if host:
        with pytest.raises(ValueError, match="-1"):
            sums(text=torch.tensor([-1, 5]))
        return
    assert sums(text=torch.tensor([-1, 5])).faults == 2  # as a real and as a padded length
    assert sums(text=torch.tensor([2**40])).faults == 2
    assert sums(estimator("lumina2"), latent=torch.tensor([[5, 3]]), prompt=torch.tensor([3])).faults > 0
    with pytest.raises(ValueError, match="divide"):
        sums(estimator("lumina2"), latent=[[5, 3]], prompt=[3])
    with pytest.raises(ValueError, match="divide"):
        sums(estimator("lumina2"), latent=same(1, 5, 3), prompt=same(1, 3))


class Divides:
    """An estimator with two index sets, both of whose lengths the model divides; one remainder is not 0 at length 0."""

    sets = {"samples": (("text", ("x",), 0),), "images": (("images", ("h", "w"), 0),)}
    streams = {"text": False, "images": True}
    moment_sets = {"x": "samples", "hw": "images"}
    whole, padded, padded_sums, coefficients = (), False, (), {"total": (1, 1), "recomputed": (0, 0)}

    def terms(self, x, h, w):
        return x // 4, h * w // 2

    def rests(self, x, h, w):
        return x % 4, (h * w + 1) % 2

    def moments(self, **batch):
        raise ValueError("not on the host")


@pytest.mark.parametrize(("images", "faults"), [(torch.tensor([[3, 5]]), 0), (torch.tensor([[3, 4], [3, 5]]), 2), (torch.zeros((0, 2), dtype=torch.int64), 0), (same(1, 3, 4), 2), (same(0, 3, 4), 0), (None, 0)])
def test_remainders_of_several_index_sets(images, faults, monkeypatch):
    monkeypatch.setattr(boundaries, "HOST", "none")
    assert sums(Divides(), text=of_position_ids(torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3]])), images=images).faults == faults
    assert sums(Divides(), text=torch.tensor([4, 6]), images=images).faults == faults + 2


def test_micro_batches_add_and_a_read_starts_anew():
    accumulator = Accumulator(LLAMA)
    accumulator.add(text=[10, 20])
    accumulator.add(text=torch.tensor([30]), times=2)
    accumulator.add(text=same(2, 5))
    assert accumulator.read().real == moments([10, 20, 30, 30, 5, 5])
    assert accumulator.read().real == (0, 0, 0)


def test_a_pack_costs_what_its_sequences_cost():
    """32 sequences of 256 tokens have 1/32 of the attention of one of 8,192, and the same linears."""
    place = list(LLAMA.moment_sets).index("xx")
    packed, whole = sums(text=of_cu_seqlens(torch.arange(0, 8193, 256))), sums(text=of_cu_seqlens(torch.tensor([0, 8192])))
    assert packed.real[place] * 32 == whole.real[place]
    assert packed.real[place - 1] == whole.real[place - 1]


class NoWait(TorchFunctionMode):
    """Refuses what reads a tensor's value on the host, or whose shape depends on values."""

    names = ("item", "tolist", "__int__", "__bool__", "__index__", "__float__", "numpy", "cpu", "nonzero", "equal", "masked_select", "unique", "allclose", "__contains__", "__array__")

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", str(func))
        masked = name in ("__getitem__", "__setitem__") and any(
            isinstance(index, torch.Tensor) and index.dtype == torch.bool for index in (args[1] if isinstance(args[1], tuple) else (args[1],))
        )
        if name in self.names or masked:
            self.seen.append(name)
            raise AssertionError(f"{name} waits for the device")
        return func(*args, **(kwargs or {}))


class NoScalar(TorchDispatchMode):
    """The same below Python: nothing may become a number of the host."""

    names = ("_local_scalar_dense", "nonzero", "equal", "masked_select", "is_nonzero", "unique", "item")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not any(name in str(func) for name in self.names), f"{func} waits for the device"
        return func(*args, **(kwargs or {}))


def micro_batches():
    """Every form in which lengths may lie on a device, made beforehand."""
    nested = torch.nested.nested_tensor([torch.zeros(3, 4), torch.zeros(5, 4)], layout=torch.jagged)
    window, image, vision, wan = (estimator(name) for name in ("mistral", "qwen_image", "qwen2_vl", "wan"))
    lengths = torch.tensor([5, 7])
    cu, inner = torch.tensor([0, 10, 10, 30, -1], dtype=torch.int32), torch.tensor([0, 9, 9, 28, -1], dtype=torch.int32)
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    positions = torch.tensor([[0, 1, 2, 0, 1]])
    grid = torch.tensor([[1, 4, 8]])
    frames = torch.tensor([[5, 16, 16], [1, 32, 32]])
    yield from ((one, lambda form=form: {"text": form()}) for one in (LLAMA, window) for form in (
        lambda: lengths, lambda: of_cu_seqlens(cu), lambda: of_cu_seqlens(cu, inner), lambda: of_cu_seqlens(cu, valid=3), lambda: of_mask(mask), lambda: of_mask(mask.bool()),
        lambda: of_position_ids(positions), lambda: of_nested(nested), lambda: same(2, 4096), lambda: [3, 4], lambda: {"lengths": lengths, "padded": lengths},
    ))  # fmt: skip
    yield image, lambda: {"latent": same(2, 1024), "prompt": of_mask(mask)}
    yield image, lambda: {"latent": lengths, "prompt": of_nested(nested)}
    yield vision, lambda: {"text": of_mask(mask), "images": of_rows(grid, 3)}
    yield wan, lambda: {"latent": frames, "prompt": lengths}


def test_adding_never_waits_for_a_device(monkeypatch):
    monkeypatch.setattr(boundaries, "HOST", "none")
    for one, batch in micro_batches():
        accumulator = Accumulator(one)
        accumulator.add(**batch())
        with NoWait() as watched, NoScalar():
            accumulator.add(**batch())
        assert watched.seen == []
        once, twice = sums(one, **batch()), accumulator.read()
        assert twice.real == tuple(2 * value for value in once.real) and not twice.faults


class Kernels(TorchDispatchMode):
    """Counts what runs on a device; views run nothing."""

    views = ("view", "select", "slice", "detach", "alias", "unsqueeze", "expand", "t.default", "transpose", "as_strided", "narrow")

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if not any(str(func).startswith(f"aten.{name}") for name in self.views):
            self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_adding_runs_at_most_eight_kernels(monkeypatch):
    monkeypatch.setattr(boundaries, "HOST", "none")
    for one, batch in micro_batches():
        accumulator = Accumulator(one)
        with Kernels() as read:
            given = batch()
        with Kernels() as added:
            accumulator.add(**given)
        assert len(read.seen) + len(added.seen) <= 8, (read.seen, added.seen)


def test_what_is_kept_for_a_device_is_summed_before_it_grows(monkeypatch):
    monkeypatch.setattr(boundaries, "HOST", "none")
    monkeypatch.setattr("symflops.training.meter.on_device.MOST_KEPT", 6)
    accumulator = Accumulator(LLAMA)
    for lengths in ([1, 2], [3, 4, 5], [6, 7], [8]):
        accumulator.add(text=torch.tensor(lengths))
        assert accumulator._device.elements <= 6
    assert accumulator.read().real == moments([1, 2, 3, 4, 5, 6, 7, 8])


def test_tensors_may_change_once_they_were_added(monkeypatch, host):
    accumulator, lengths = Accumulator(LLAMA), torch.tensor([5, 7])
    accumulator.add(text=lengths)
    lengths += 1
    assert accumulator.read().real == moments([5, 7])


def test_the_watch_sees_what_waits():
    value = torch.tensor([1, 2])
    for waits in (lambda: value[0].item(), lambda: value.tolist(), lambda: int(value[0]), lambda: bool(value[0]), lambda: value.nonzero(),
                  lambda: torch.equal(value, value), lambda: value[value > 1], lambda: list(range(value[0]))):  # fmt: skip
        with NoWait(), pytest.raises(AssertionError, match="waits"):
            waits()
    for waits in (lambda: value[0].item(), lambda: int(value[0]), lambda: value.nonzero(), lambda: torch.equal(value, value)):
        with NoScalar(), pytest.raises(AssertionError, match="waits"):
            waits()


@pytest.mark.elsewhere
def test_adding_never_waits_for_a_cuda_device():
    lengths = torch.randint(1, 8192, (64,), device="cuda")
    cu = torch.cat((torch.zeros(1, dtype=torch.int64, device="cuda"), lengths.cumsum(0))).int()
    mask = torch.ones(4, 128, device="cuda")
    accumulator = Accumulator(LLAMA, torch.device("cuda"))
    accumulator.add(text=lengths)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            accumulator.add(text=lengths)
            accumulator.add(text=of_cu_seqlens(cu))
            accumulator.add(text=of_mask(mask))
            accumulator.add(text=of_position_ids(torch.arange(128, device="cuda")[None]))
    finally:
        torch.cuda.set_sync_debug_mode("default")
    expected = lengths.tolist() * 7 + [128] * 15
    assert accumulator.read().real == moments(expected)

"""Small modules that are made by hand, each with its inputs and the multiply-adds of its forward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

B, S, D, H, F, V = 2, 6, 8, 4, 12, 20
"""Samples, tokens, width, heads, hidden width, words."""
X = (B, S, D)


class Calls(nn.Module):
    """Submodules by name, and a function of them and the inputs."""

    def __init__(self, call: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.call = call
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(self, *args, **kwargs)


class Doubled(torch.autograd.Function):
    """A product with both gradients written out, which keeps its result in memory once."""

    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor) -> Tensor:
        context.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        x, weight = context.saved_tensors
        return gradient @ weight.T, x.flatten(0, -2).T @ gradient.flatten(0, -2)


def floats(*shape: int) -> Tensor:
    """Random numbers."""
    return torch.randn(*shape)


def ids(*shape: int) -> Tensor:
    """Random token ids."""
    return torch.randint(0, V, shape)


def weight(*shape: int) -> nn.Parameter:
    """A parameter of small random numbers."""
    return nn.Parameter(0.1 * torch.randn(*shape))


def heads(x: Tensor) -> Tensor:
    """``[b, s, d]`` by heads."""
    return x.unflatten(-1, (H, D // H)).transpose(1, 2)


def by_products(self: Any, x: Tensor) -> Tensor:
    q, k, v = map(heads, self.qkv(x).chunk(3, -1))
    return (((q @ k.transpose(-1, -2)).softmax(-1)) @ v).transpose(1, 2).flatten(2)


def by_batches(self: Any, x: Tensor) -> Tensor:
    q, k, v = (heads(one).flatten(0, 1) for one in self.qkv(x).chunk(3, -1))
    scores = torch.baddbmm(q.new_zeros(1, 1, 1), q, k.transpose(1, 2), alpha=0.5)
    return torch.bmm(scores.softmax(-1), v).unflatten(0, (-1, H)).transpose(1, 2).flatten(2)


def by_einsum(self: Any, x: Tensor) -> Tensor:
    q, k, v = map(heads, self.qkv(x).chunk(3, -1))
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k).softmax(-1)
    return torch.einsum("bhqk,bhkd->bqhd", scores, v).flatten(2)


def fused(self: Any, x: Tensor, **options: Any) -> Tensor:
    q, k, v = map(heads, self.qkv(x).chunk(3, -1))
    return functional.scaled_dot_product_attention(q, k, v, **options).transpose(1, 2).flatten(2)


def grouped(self: Any, x: Tensor) -> Tensor:
    q, (k, v) = heads(self.q(x)), (one.unflatten(-1, (2, D // H)).transpose(1, 2) for one in self.kv(x).chunk(2, -1))
    return functional.scaled_dot_product_attention(q, k, v, enable_gqa=True).transpose(1, 2).flatten(2)


def stepwise(self: Any, x: Tensor) -> Tensor:
    state = x.new_zeros(x.shape[0], F)
    for step in range(S):
        state = self.cell(x[:, step], state)
    return state


def stepwise_lstm(self: Any, x: Tensor) -> Tensor:
    state, cell = x.new_zeros(x.shape[0], F), x.new_zeros(x.shape[0], F)
    for step in range(S):
        state, cell = self.cell(x[:, step], (state, cell))
    return state


def scanned(self: Any, x: Tensor) -> Tensor:
    state, found = x.new_zeros(x.shape[0], F), []
    for step in range(S):
        state = torch.tanh(state @ self.inner + self.entry(x[:, step]))
        found.append(state)
    return torch.stack(found, 1)


def routed(self: Any, x: Tensor) -> Tensor:
    weights, chosen = self.router(x).softmax(-1).topk(2, -1)
    hidden = torch.einsum("bsd,bskdf->bskf", x, self.up[chosen]).relu()
    return (torch.einsum("bskf,bskfd->bskd", hidden, self.down[chosen]) * weights.unsqueeze(-1)).sum(2)


def patches(self: Any, x: Tensor) -> Tensor:
    return self.layer(functional.unfold(x, 3).transpose(1, 2))


def generated(self: Any, x: Tensor, z: Tensor) -> Tensor:
    return functional.conv2d(x, self.net(z).view(5, 3, 3, 3))


def repeated(self: Any, x: Tensor) -> Tensor:
    for _ in range(3):
        x = self.layer(x).relu()
    return x


def stacked(self: Any, x: Tensor) -> Tensor:
    for layer in self.layers:
        x = x + layer(x)
    return x


def frozen_below(self: Any, x: Tensor) -> Tensor:
    with torch.no_grad():
        x = self.below(x)
    return self.above(x)


def adapted(self: Any, x: Tensor) -> Tensor:
    return self.base(x) + self.b(self.a(x))


def residual(self: Any, x: Tensor) -> Tensor:
    y = self.norm1(self.conv1(x)).relu()
    return functional.adaptive_avg_pool2d(self.norm2(self.conv2(y)) + x, 1).flatten(1)


def gated(self: Any, x: Tensor) -> Tensor:
    hidden = x.new_zeros(x.shape[0], 5, 7, 7)
    for step in range(3):
        update, value = self.conv(torch.cat([x[:, step], hidden], 1)).chunk(2, 1)
        hidden = hidden * update.sigmoid() + value.tanh()
    return hidden


class Case(NamedTuple):
    """A module, its inputs, and the multiply-adds of its forward pass by hand.

    ``gap`` are those of operators that the trace lists, as no counter has a rule for them.
    """

    make: Callable[[], nn.Module]
    inputs: Callable[[], tuple[Any, ...]]
    products: int
    gap: int = 0


def text() -> tuple[Tensor]:
    return (floats(*X),)


def picture(channels: int = 3, side: int = 9) -> Callable[[], tuple[Tensor]]:
    return lambda: (floats(B, channels, side, side),)


ATTENTION = B * S * D * 3 * D + 2 * B * S * S * D
ENCODER = B * S * D * 4 * D + 2 * B * S * S * D + 2 * B * S * D * F
T = 5
DECODER = B * (2 * T * D * 4 * D - 2 * T * D * D + 2 * S * D * D + 2 * T * T * D + 2 * T * S * D + 2 * T * D * F)

CASES: dict[str, Case] = {
    "Linear": Case(lambda: nn.Linear(D, F), text, B * S * D * F),
    "Linear without bias": Case(lambda: nn.Linear(D, F, bias=False), lambda: (floats(B, D),), B * D * F),
    "Conv1d": Case(lambda: nn.Conv1d(3, 5, 3, stride=2, padding=1), lambda: (floats(B, 3, 11),), B * 6 * 3 * 5 * 3),
    "Conv2d": Case(lambda: nn.Conv2d(3, 5, 3, padding=1), picture(), B * 81 * 3 * 5 * 9),
    "Conv2d, circular padding": Case(
        lambda: nn.Conv2d(3, 5, 3, padding=1, padding_mode="circular"), picture(), B * 81 * 3 * 5 * 9
    ),
    "Conv3d": Case(lambda: nn.Conv3d(3, 5, 3), lambda: (floats(B, 3, 5, 6, 7),), B * 3 * 4 * 5 * 3 * 5 * 27),
    "Conv2d, two groups": Case(lambda: nn.Conv2d(4, 6, 3, groups=2), picture(4), B * 49 * 4 * 6 * 9 // 2),
    "Conv2d, depthwise and dilated": Case(lambda: nn.Conv2d(4, 4, 3, groups=4, dilation=2), picture(4), B * 25 * 4 * 9),
    "ConvTranspose1d": Case(lambda: nn.ConvTranspose1d(4, 6, 4, stride=2), lambda: (floats(B, 4, 7),), B * 7 * 4 * 6 * 4),
    "ConvTranspose2d, two groups": Case(
        lambda: nn.ConvTranspose2d(4, 6, 2, stride=2, groups=2), picture(4), B * 81 * 4 * 6 * 4 // 2
    ),
    "ConvTranspose3d": Case(
        lambda: nn.ConvTranspose3d(2, 3, 2, stride=2), lambda: (floats(B, 2, 3, 4, 5),), B * 60 * 2 * 3 * 8
    ),
    "Residual block with BatchNorm": Case(
        lambda: Calls(
            residual,
            conv1=nn.Conv2d(4, 4, 3, padding=1),
            norm1=nn.BatchNorm2d(4),
            conv2=nn.Conv2d(4, 4, 3, padding=1),
            norm2=nn.BatchNorm2d(4),
        ),
        picture(4),
        2 * B * 81 * 16 * 9,
    ),
    "Unfold and Linear": Case(lambda: Calls(patches, layer=nn.Linear(27, 5)), picture(), B * 49 * 27 * 5),
    "Convolution with a weight from a network": Case(
        lambda: Calls(generated, net=nn.Linear(D, 135)), lambda: (floats(B, 3, 9, 9), floats(D)), D * 135 + B * 49 * 135
    ),
    "Convolutional recurrence": Case(
        lambda: Calls(gated, conv=nn.Conv2d(8, 10, 3, padding=1)), lambda: (floats(B, 3, 3, 7, 7),), 3 * B * 49 * 8 * 10 * 9
    ),
    "Upsampler": Case(
        lambda: nn.Sequential(nn.Conv2d(3, 8, 1), nn.PixelShuffle(2), nn.Upsample(scale_factor=2), nn.Conv2d(2, 1, 1)),
        picture(),
        B * 81 * 3 * 8 + B * 81 * 16 * 2,
    ),
    "RNN": Case(lambda: nn.RNN(D, F, batch_first=True), text, B * S * F * (D + F)),
    "LSTM, two layers, two ways": Case(
        lambda: nn.LSTM(D, F, 2, batch_first=True, bidirectional=True), text, B * S * 4 * F * 2 * (D + F + 2 * F + F)
    ),
    "LSTM with projection": Case(lambda: nn.LSTM(D, F, batch_first=True, proj_size=3), text, B * S * (4 * F * (D + 3) + 3 * F)),
    "GRU": Case(lambda: nn.GRU(D, F, batch_first=True), text, B * S * 3 * F * (D + F)),
    "GRUCell in a loop": Case(lambda: Calls(stepwise, cell=nn.GRUCell(D, F)), text, B * S * 3 * F * (D + F)),
    "LSTMCell in a loop": Case(lambda: Calls(stepwise_lstm, cell=nn.LSTMCell(D, F)), text, B * S * 4 * F * (D + F)),
    "Scan": Case(lambda: Calls(scanned, inner=weight(F, F), entry=nn.Linear(D, F)), text, B * S * F * (D + F)),
    "MultiheadAttention": Case(
        lambda: Calls(lambda self, x: self.mixer(x, x, x)[0], mixer=nn.MultiheadAttention(D, H, batch_first=True)),
        text,
        B * S * D * 4 * D + 2 * B * S * S * D,
    ),
    "MultiheadAttention, another text": Case(
        lambda: Calls(
            lambda self, x, y: self.mixer(x, y, y, need_weights=False)[0],
            mixer=nn.MultiheadAttention(D, H, kdim=F, vdim=F, batch_first=True),
        ),
        lambda: (floats(*X), floats(B, T, F)),
        2 * B * S * D * D + 2 * B * T * F * D + 2 * B * S * T * D,
    ),
    "scaled_dot_product_attention": Case(lambda: Calls(fused, qkv=nn.Linear(D, 3 * D)), text, ATTENTION),
    "scaled_dot_product_attention, causal": Case(
        lambda: Calls(lambda self, x: fused(self, x, is_causal=True), qkv=nn.Linear(D, 3 * D)), text, ATTENTION
    ),
    "Attention with grouped queries": Case(
        lambda: Calls(grouped, q=nn.Linear(D, D), kv=nn.Linear(D, D)), text, 2 * B * S * D * D + 2 * B * S * S * D
    ),
    "Attention by matmul": Case(lambda: Calls(by_products, qkv=nn.Linear(D, 3 * D)), text, ATTENTION),
    "Attention by baddbmm": Case(lambda: Calls(by_batches, qkv=nn.Linear(D, 3 * D)), text, ATTENTION),
    "Attention by einsum": Case(lambda: Calls(by_einsum, qkv=nn.Linear(D, 3 * D)), text, ATTENTION),
    "TransformerEncoder": Case(
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, F, 0.0, batch_first=True), 2), text, 2 * ENCODER
    ),
    "TransformerEncoder, fast path": Case(
        lambda: (
            nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, F, 0.0, batch_first=True), 2).eval().requires_grad_(False)
        ),
        text,
        2 * ENCODER,
    ),
    "TransformerDecoder": Case(
        lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(D, H, F, 0.0, batch_first=True), 1),
        lambda: (floats(B, T, D), floats(*X)),
        DECODER,
    ),
    "Embedding and tied head": Case(
        lambda: Calls(lambda self, x: self.words(x) @ self.words.weight.T, words=nn.Embedding(V, D)),
        lambda: (ids(B, S),),
        B * S * D * V,
    ),
    "EmbeddingBag": Case(lambda: nn.Sequential(nn.EmbeddingBag(V, D), nn.Linear(D, F)), lambda: (ids(B, S),), B * D * F),
    "Experts": Case(
        lambda: Calls(routed, router=nn.Linear(D, 4), up=weight(4, D, F), down=weight(4, F, D)),
        text,
        B * S * (4 * D + 2 * 2 * D * F),
    ),
    "einsum of three": Case(
        lambda: Calls(lambda self, x: torch.einsum("bsd,rd,rf->bsf", x, self.a, self.b), a=weight(3, D), b=weight(3, F)),
        text,
        B * S * 3 * (D + F),
    ),
    "Bilinear": Case(
        lambda: nn.Bilinear(D, D, F), lambda: (floats(B, D), floats(B, D)), B * D * D * F + B * D * F, B * D * D * F + B * D * F
    ),
    "Matrix and vector": Case(lambda: Calls(lambda self, x: self.w @ x, w=weight(F, D)), lambda: (floats(D),), D * F, D * F),
    "Layer shared three times": Case(lambda: Calls(repeated, layer=nn.Linear(D, D)), text, 3 * B * S * D * D),
    "List of layers": Case(
        lambda: Calls(stacked, layers=nn.ModuleList(nn.Linear(D, D) for _ in range(4))), text, 4 * B * S * D * D
    ),
    "Dictionary in and out": Case(
        lambda: Calls(lambda self, batch: {"logits": self.head(batch["x"] + batch["y"])}, head=nn.Linear(D, V)),
        lambda: ({"x": floats(*X), "y": floats(*X)},),
        B * S * D * V,
    ),
    "Tuples in and out": Case(
        lambda: Calls(
            lambda self, pair: (self.one(pair[0]) + self.two(pair[1][0]), None), one=nn.Linear(D, F), two=nn.Linear(D, F)
        ),
        lambda: ((floats(*X), [floats(*X)]),),
        2 * B * S * D * F,
    ),
    "Checkpointed layers": Case(
        lambda: Calls(
            lambda self, x: checkpoint(self.two, self.one(x), use_reentrant=False),
            one=nn.Linear(D, F),
            two=nn.Sequential(nn.Linear(F, F), nn.GELU(), nn.Linear(F, D)),
        ),
        text,
        B * S * (D * F + F * F + F * D),
    ),
    "Function with its own gradient": Case(
        lambda: Calls(lambda self, x: Doubled.apply(x, self.w), w=weight(D, F)), text, B * S * D * F
    ),
    "Part without gradients": Case(
        lambda: Calls(frozen_below, below=nn.Linear(D, F), above=nn.Linear(F, D)), text, 2 * B * S * D * F
    ),
    "Low-rank adapter": Case(
        lambda: Calls(
            adapted, base=nn.Linear(D, F).requires_grad_(False), a=nn.Linear(D, 3, bias=False), b=nn.Linear(3, F, bias=False)
        ),
        text,
        B * S * (D * F + 3 * D + 3 * F),
    ),
}

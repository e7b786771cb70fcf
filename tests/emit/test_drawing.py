"""Pictures of models: boxes do not overlap, edges lead down, and all matrix work is in the picture."""

from __future__ import annotations

import re
import xml.etree.ElementTree as tree

import networkx
import pytest
from hypothesis import given, settings, strategies as st

from symflops.emit.html.boxes import MOST, PASSED, WORK, best, grouped, without_steps
from symflops.emit.html.drawing import drawing, pictures
from symflops.emit.html.layered_layout import layered
from tests.shipped import load

MODELS = ("llama", "qwen_image", "deepseek_v3", "whisper", "wan", "kimi_linear", "unet_2d", "rnn", "linear", "clip")


@st.composite
def graphs(draw):
    """Boxes of several sizes, and edges from earlier to later ones."""
    count = draw(st.integers(1, 14))
    boxes = {f"b{number}": (draw(st.integers(20, 160)), draw(st.integers(12, 60))) for number in range(count)}
    pairs = [(f"b{one}", f"b{two}") for two in range(count) for one in range(two)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=30)) if pairs else []
    return boxes, edges


@given(graphs())
@settings(max_examples=100, deadline=None)
def test_boxes_do_not_touch_and_edges_lead_down(graph):
    boxes, edges = graph
    found = layered(boxes, edges)
    corners = {name: (x - boxes[name][0] / 2, y - boxes[name][1] / 2, x + boxes[name][0] / 2, y + boxes[name][1] / 2) for name, (x, y) in found.places.items()}
    assert corners.keys() == boxes.keys()
    for one, (left, top, right, bottom) in corners.items():
        assert -0.01 <= left and right <= found.width + 0.01 and -0.01 <= top and bottom <= found.height + 0.01
        for two, other in corners.items():
            assert one == two or right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top, (one, two)
    assert found.routes.keys() == set(edges)
    for (one, two), points in found.routes.items():
        assert [y for _, y in points] == sorted(y for _, y in points)
        assert points[0] == pytest.approx((found.places[one][0], corners[one][3]))
        assert points[-1] == pytest.approx((found.places[two][0], corners[two][1]))
        for x, y in points[1:-1]:
            assert not any(left < x < right and top < y < bottom for left, top, right, bottom in corners.values())


@given(graphs())
@settings(max_examples=30, deadline=None)
def test_ports_stand_at_the_ends(graph):
    boxes, edges = graph
    into, out = {"in": (2, 0)}, {"out": (2, 0)}
    found = layered(boxes | into | out, [*edges, ("in", "b0"), ("b0", "out")], ["in"], ["out"])
    ys = {name: y for name, (_, y) in found.places.items()}
    assert all(ys["in"] < y < ys["out"] for name, y in ys.items() if name in boxes)


def test_a_cycle_is_refused():
    with pytest.raises(networkx.NetworkXUnfeasible):
        layered({"a": (1, 1), "b": (1, 1)}, [("a", "b"), ("b", "a")])


@pytest.mark.parametrize("name", MODELS)
def test_a_picture_shows_every_module_that_does_work(name):
    graph = load(name).graph({}).to_networkx()
    groups, edges = best(without_steps(graph))
    work = [data["kind"] for _, data in graph.nodes(data=True) if data["kind"] in WORK]
    assert sorted(kind for group in groups.values() for kind in group.kinds if kind in WORK) == sorted(work)
    assert len(groups) <= MOST or len(groups) == len(grouped(without_steps(graph), 1)[0])
    assert networkx.is_directed_acyclic_graph(networkx.DiGraph(edges))
    found = drawing(graph)
    if len(groups) < 2:
        assert found == ""
        return
    picture = tree.fromstring(found)
    width, height = (float(picture.get(side)) for side in ("width", "height"))
    for box in picture.iter("rect"):
        assert float(box.get("x")) >= 0 and float(box.get("x")) + float(box.get("width")) <= width + 1
        assert float(box.get("y")) >= 0 and float(box.get("y")) + float(box.get("height")) <= height + 1
    labels = [text.text for text in picture.iter("text")]
    assert all(group.label in labels for group in groups.values() if not group.is_sum)
    assert picture.get("role") == "img"
    assert re.search(r"\S", picture.find("desc").text)


def test_what_only_hands_values_on_is_passed_through():
    graph = networkx.DiGraph(name="small")
    for number, (name, kind) in enumerate([("x", "input"), ("l", "linear"), ("v", "expand"), ("s", "add"), ("y", "output")]):
        graph.add_node(name, label=name, kind=kind, loops=(), number=number)
    graph.add_edges_from([("x", "l"), ("l", "v"), ("v", "s"), ("x", "s"), ("s", "y")])
    graph.add_edge("s", "l", carried=True)
    kept = without_steps(graph)
    assert set(kept.edges) == {("x", "l"), ("l", "s"), ("x", "s"), ("s", "y")}
    assert "expand" in PASSED


def test_labels_are_text():
    graph = networkx.DiGraph(name="<x>&")
    graph.add_node("a", label='<script>"', kind="linear", loops=("blocks x <L>",), caption="a -> b**2")
    graph.add_node("b", label="b&", kind="output", loops=())
    graph.add_edge("a", "b")
    picture = tree.fromstring(drawing(graph))
    assert not list(picture.iter("script"))
    assert {'<script>"', "blocks × <L>", "linear a → b²"} <= {text.text for text in picture.iter("text")}


@pytest.mark.parametrize("count", [1, 4, 12])
def test_residual_blocks_stand_in_one_line(count):
    boxes, edges = {"in": (60, 20)}, []
    last = "in"
    for number in range(count):
        norm, work, plus = (f"{name}{number}" for name in ("norm", "work", "plus"))
        boxes |= {norm: (140, 44), work: (90, 44), plus: (24, 24)}
        edges += [(last, norm), (norm, work), (work, plus), (last, plus)]
        last = plus
    found = layered(boxes, edges)
    assert max(x for x, _ in found.places.values()) - min(x for x, _ in found.places.values()) < 0.01
    assert found.width < 200
    for (one, two), points in found.routes.items():
        assert len({round(x, 2) for x, _ in points[1:-1]}) <= 1, (one, two)


def test_wide_pictures_are_levels_and_no_caption_has_a_function_of_ours():
    for name in ("unet_2d_condition", "qwen3_next", "deepseek_v3", "llama"):
        found = pictures(load(name).graph({}).to_networkx())
        assert not re.search(r"\b(Excess|Given|FloorDiv|CeilDiv|Least|Most|AtLeast|Equal)\(", found)
        assert (found.count("<details") > 0) is (name in ("unet_2d_condition", "qwen3_next"))
        ids = re.findall(r' id="([^"]+)"', found)
        assert len(ids) == len(set(ids))
        assert set(re.findall(r'data-opens="([^"]+)"', found)) == {id for id in ids if id.startswith("level-")}
    assert "max(0, L \u2212 K)" in pictures(load("deepseek_v3").graph({}).to_networkx())

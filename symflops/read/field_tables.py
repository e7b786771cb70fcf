"""Tables of the fields of specs, blocks, regimes and conventions; those of operators are in :mod:`symflops.ops.kind`.

Both the readers and the JSON Schema of the language use these tables, so the two cannot differ.
"""

from __future__ import annotations

from symflops.ops.kind import COMMON, ROLE, Field, Form, words_of
from symflops.read.yaml_nodes import LANGUAGE as VERSION

TYPES = {
    "int": "number", "position": "position", "float": "rational", "bool": "flag", "text": "text", "list": "list",
    "entries": "entries", "each": "number or list", "any": "any",
    "padding": "number, list, same or valid",
    "ints": "list", "positions": "list", "texts": "list", "flags": "list",
}  # fmt: skip
"""Types of a size: word in a spec -> kind."""

ITEMS = {"ints": "number", "positions": "position", "texts": "text", "flags": "flag"}
"""Type of a list -> kind of its items."""

SIZE = (
    Field(
        "key", Form.TEXTS,
        "the config field that holds it; dots lead into nested configs; the first present of several; without one: by class",
    ),
    Field("default", Form.EXPRESSION, "its value if the config lacks it; may use the sizes above"),
    Field("if_null", Form.EXPRESSION, "its value if the config has null there; may use the sizes above"),
    Field("optional", Form.FLAG, "it may be null: 'when: k != null'"),
    Field("doc", Form.TEXT, "what it is, in a few words"),
    Field("latex", Form.TEXT, "its symbol in formulas"),
    Field("type", Form.WORD, "its type, if the default does not show it", words=tuple(TYPES)),
    Field("evaluation", Form.FLAG, "the value of a flag in evaluation mode, whatever the config says"),
    Field("part", Form.TEXT, "the part of the model that it counts, which only regimes run that name it under 'parts'"),
)  # fmt: skip
STREAM = (
    Field("over", Form.NAME, "the index set: 'samples', 'once', or one of its own such as 'images'"),
    Field("axes", Form.AXES, "its axes: [x], or {x: length}"),
    Field("default", Form.COUNT, "each length of its items if a batch leaves it out; a batch may have one number for all"),
    Field("doc", Form.TEXT, "what it is"),
)
INPUT = (
    Field("stream", Form.NAME, "the stream that it has"),
    Field("width", Form.EXPRESSION, "its width; without one it carries indices"),
    Field("when", Form.EXPRESSION, "whether the model receives it"),
    Field("needed", Form.FLAG, "the model cannot run without it where 'when' holds; by default a batch may leave it out"),
    Field("layout", Form.TEXT, "the dimensions of the real tensor, one word each, 'b' the items: \"b x c\""),
    Field("values", Form.TEXTS, "lengths that its values hold, one column each"),
    Field("counts", Form.TEXT, "the stream whose length is the sum of each row"),
    Field("over", Form.TEXT, "the index set of its rows"),
)
LANGUAGE = Field("language", Form.WORD, "the version of the language: 2", required=True, words=(VERSION,))
BASELINE = (
    Field("spec", Form.NAME, "the spec that this one is compared with", required=True),
    Field("config", Form.NAMED, "fields of its config, as formulas of sizes; default: fields of the same name"),
    Field("batch", Form.NAMED, "entries of its streams, as formulas of lengths and sizes; default: streams of the same name"),
    Field("lengths", Form.NAMED, "batch variables that grow with the first one, as formulas; default: they stay"),
)
EXPECT = (
    Field("parameters", Form.NUMBER, "all parameters, to the digits given: 8.03e9"),
    Field("active", Form.NUMBER, "parameters that one token goes through"),
    Field("flops_per_token", Form.NUMBER, "FLOPs of both passes over the tokens of the batch, as 'symflops estimate' has them"),
    Field("regime", Form.TEXT, "the regime of FLOPs; default: full"),
    Field("convention", Form.TEXT, "the convention of FLOPs; default: symflops"),
    Field("batch", Form.OTHER, "the batch of FLOPs; default: one item per stream, of typical lengths"),
    Field("config", Form.OTHER, "config fields that differ from the defaults; a variant has its own"),
)
DOCUMENT = (
    LANGUAGE,
    Field("name", Form.NAME, "what the spec is called, and its module", required=True),
    Field("title", Form.TEXT, "one line about the model"),
    Field("reference", Form.TEXTS, "the classes that it describes: package.Class, a list, or a mapping with what differs"),
    Field("model_type", Form.TEXTS, "model_type of its configs"),
    Field("pipelines", Form.TEXTS, "pipeline classes that contain it"),
    Field("sizes", Form.NAMED, "letters, with the config fields that they are read from", fields=SIZE),
    Field("derived", Form.NAMED, "sizes that are formulas of others"),
    Field(
        "requires",
        Form.NAMED,
        "conditions that sizes and lengths must fulfil, by a name of each; a config or batch that does not is refused",
    ),
    Field("expected", Form.NAMED, "conditions under which the data decides how much work is done, by what estimates say then"),
    Field("variants", Form.NAMED, "published structures, each by the config fields that differ"),
    Field("expect", Form.OTHER, "figures that a paper states of the defaults, or of published sizes by name", fields=EXPECT),
    Field("streams", Form.NAMED, "rows that vary with the batch", fields=STREAM),
    Field("inputs", Form.NAMED, "what the model receives", fields=INPUT),
    Field("blocks", Form.NAMED, "pieces of graph that are called by name"),
    Field("graph", Form.GRAPH, "the operators in the order of the forward pass", required=True),
    Field("outputs", Form.VALUES, "values that the loss can use", required=True),
    Field("baseline", Form.OTHER, "the spec that pages compare it with: its name, or a mapping", fields=BASELINE),
)
EXTENDS = Field("extends", Form.NAME, "the spec that this one extends: only the differences are written")
PLACES = (
    Field("after", Form.TEXT, "the path of the entry that a new one follows"),
    Field("before", Form.TEXT, "the path of the entry that a new one precedes"),
)
BLOCK = (
    Field("params", Form.NAMED, "parameters of the block with their defaults; null if a call must give one"),
    Field("inputs", Form.VALUES, "its operands, by position"),
    Field("optional", Form.VALUES, "inputs that may be missing"),
    Field("outputs", Form.VALUES, "its results"),
    Field("graph", Form.GRAPH, "its entries"),
)
AXIS = (
    Field("axis", Form.NAME, "the axis whose tokens it runs over", required=True),
    Field("of", Form.NAME, "the value that has the axis"),
)
REPEAT = (
    Field("repeat", Form.OTHER, "how often: a size, a list, or {axis: t} for each token", required=True, fields=AXIS),
    Field("graph", Form.GRAPH, "the entries that are repeated", required=True),
    Field("index", Form.NAME, "the letter of the index, from 'start'"),
    Field("item", Form.NAME, "the letter of the item of the list"),
    Field("start", Form.EXPRESSION, "the first index"),
    Field("shared", Form.FLAG, "all iterations have the same parameters"),
    Field("when", Form.EXPRESSION, "leave it out when false"),
    ROLE,
)
GROUP = (
    Field("graph", Form.GRAPH, "the entries under this path", required=True),
    Field("when", Form.EXPRESSION, "leave it out when false"),
    Field("no_grad", Form.EXPRESSION, "no gradient passes through it"),
    Field("experts", Form.EXPRESSION, "the number of experts: copies of every parameter inside, of which each row uses some"),
    Field("list", Form.FLAG, "the experts are modules of a list"),
    Field("choose", Form.EXPRESSION, "experts that each row runs through; default: all"),
    Field(
        "routed",
        Form.EXPRESSION,
        "experts that each row is routed to, where it runs through more; default: as many",
    ),
    Field("from", Form.VALUES, "the operand of the experts, 'x' inside"),
    Field("weights", Form.VALUES, "the router's weights, multiplied in at the end"),
    Field("to", Form.VALUES, "the result of the experts, 'y' inside"),
    ROLE,
)
CALL = (
    Field("block", Form.TEXT, "the block that is called", required=True),
    *(field for field in COMMON if field.name != "op"),
)

TRAINING = (
    Field("train", Form.TEXTS, "patterns of the parameters that train; default: all, or none if it decodes"),
    Field("freeze", Form.TEXTS, "patterns of those that are frozen nevertheless"),
    Field("loss", Form.TEXTS, "outputs that the loss uses; default: all"),
    Field("input_grad", Form.TEXTS, "inputs that need a gradient"),
    Field("force_grad", Form.TEXTS, "modules whose result is made to need a gradient"),
    Field("no_force_grad", Form.TEXTS, "modules that make none need a gradient, whatever the spec says"),
    Field("enter_grad", Form.TEXTS, "modules whose operands need a gradient, which enters from outside"),
    Field("parts", Form.TEXTS, "parts of the model that run, too, such as its prediction heads"),
)
LISTS = words_of(TRAINING)
ADAPTER = (
    Field("kind", Form.WORD, "what it computes", words=("lora", "rslora", "dora", "merged", "folded")),
    Field("rank", Form.COUNT, "its rank; default: 16"),
    Field("targets", Form.TEXTS, "patterns of modules that have one; merged, folded: of parameters", required=True),
    Field("names", Form.TEXTS, "'peft', 'plain', or three names: base, down, up"),
    Field("dropout", Form.FLAG, "its input is dropped out, so DoRA computes the base twice"),
    Field("bias", Form.FLAG, "its up projection has a bias"),
    Field("in_out", Form.FLAG, "merged, folded: weights of experts are stored (in, out)"),
)
RECOMPUTE = (
    Field("groups", Form.TEXTS, "patterns of modules, each recomputed as one", required=True),
    Field("every", Form.COUNT, "of a repeat, only every n-th iteration is a group"),
    Field("attention_only", Form.FLAG, "recompute attention alone"),
    Field("early_stop", Form.FLAG, "stop at the last saved tensor; default: true"),
    Field("reentrant", Form.FLAG, "each group is one autograd function"),
)
PASSES = (
    Field("forward", Form.COUNT, "forward passes per timestep"),
    Field("detached", Form.COUNT, "forward passes without gradients"),
    Field("timesteps", Form.COUNT, "denoising steps"),
    Field("accumulation", Form.COUNT, "micro-batches"),
)
PHASE = (
    Field("regime", Form.TEXT, "the regime of a further run of the model", required=True),
    Field("times", Form.COUNT, "how often it runs"),
)
HEAD = Field("head", Form.WORD, "'given': a batch has 'head', on how many tokens the head runs", words=("given",))
REGIME = (
    Field("name", Form.TEXT, "what it is called"),
    Field("doc", Form.TEXT, "what it is"),
    Field("lenient", Form.FLAG, "a pattern may match nothing if another one of its list matches"),
    Field(
        "decode",
        Form.WORD,
        "calls that keep a state: a prompt, new tokens over past ones, or a whole generation",
        words=("prefill", "step", "generate"),
    ),
    HEAD,
    *TRAINING,
    Field("adapters", Form.LIST, "adapters beside linears and convolutions", fields=ADAPTER),
    Field("recompute", Form.FIELDS, "what the backward pass computes again", fields=RECOMPUTE),
    Field("passes", Form.FIELDS, "how often the model runs in a step", fields=PASSES),
    Field("phases", Form.LIST, "further runs of the model in a step", fields=PHASE),
)

MASKS = tuple(Field(name, Form.WORD, f"pairs of {name} masks") for name in ("causal", "sliding", "local", "chunked", "prefix"))
LENGTHS = tuple(Field(name, Form.WORD, f"tokens of {name} work") for name in ("linear", "attention"))
BACKWARD = (
    Field("trained", Form.NUMBER, "work on weights that train, in multiples of its forward work", required=True),
    Field("frozen", Form.NUMBER, "work on weights that do not", required=True),
    Field("other", Form.NUMBER, "work without weights", required=True),
    Field("idle", Form.NUMBER, "work without a gradient, since nothing trains there or before it"),
)
ADDITIONS = Field("additions", Form.WORD, "whether a sum of n products has n additions, or n - 1", words=("all", "exact"))
PAIRS = ("useful", "all", "half", "band", "half_band", "half_within", "area", "useful_beyond", "band_beyond")
RULE = (
    Field("count", Form.WORD, "whether it counts", words=("yes", "no", "as_matmul")),
    Field("forward", Form.NUMBER, "a multiple of its forward work"),
    Field("per_element", Form.NUMBER, "FLOPs per element, instead of its work; what runs element by element has no MACs"),
    Field("rows", Form.WORD, "the role whose rows it counts on"),
    Field("beyond", Form.WORD, "it counts for texts beyond the bound of attention of this role or region"),
    Field("backward", Form.OTHER, "its backward pass: 'derived', or multiples", fields=BACKWARD),
    ADDITIONS,
    Field("pairs", Form.WORD, "the pairs of its masked attention", words=PAIRS),
    Field("weights", Form.WORD, "whether its weights count as work or as parameters", words=("work", "parameters")),
)
REPRODUCES = (
    Field("of", Form.TEXT, "the framework", required=True),
    Field("version", Form.TEXT, "its release, or the commit", required=True),
    Field("date", Form.TEXT, "the date of that version, in quotes", required=True),
    Field("changed", Form.TEXT, "what the framework counts otherwise since, and where that is seen"),
)
CONVENTION = (
    Field("name", Form.TEXT, "what it is called", required=True),
    Field("doc", Form.TEXT, "what it counts, in one line"),
    Field("links", Form.TEXTS, "its sources"),
    Field(
        "unit", Form.WORD, "what a figure counts; 'macs_as_flops': the source counts a multiply-add as one FLOP",
        words=("flops", "macs", "macs_as_flops"),
    ),
    Field("unseen", Form.WORD, "whether work counts that no counter sees", words=("true", "false")),
    Field("counts", Form.WORD, "work, or parameters per token", words=("work", "parameters")),
    Field(
        "experts", Form.WORD, "experts that count: those that a token is routed to, those that run, or all parameters",
        words=("routed", "executed", "all"),
    ),
    Field("tied", Form.WORD, "whether tied parameters count for each use", words=("each", "once")),
    Field("roles", Form.NAMED, "how work of each role counts", fields=RULE),
    Field(
        "pairs", Form.CHOICE, "pairs of queries and keys that count, for all masks or for each", fields=MASKS,
        words=PAIRS,
    ),
    Field("length", Form.CHOICE, "tokens that count, for all work or for each class", fields=LENGTHS, words=("real", "padded")),
    Field("backward", Form.OTHER, "the backward pass: 'derived', or multiples of the forward work", fields=BACKWARD),
    Field("attention_backward", Form.WORD, "products of attention's backward pass", words=("4", "5")),
    Field("attention_width", Form.WORD, "the assumed width of attention", words=("own", "queries", "model")),
    Field("counter_errors", Form.WORD, "what PyTorch's counter counts too often", words=("corrected", "kept")),
    Field("compared", Form.WORD, "whether the pages of models compare it with others", words=("true", "false")),
    Field("stored", Form.WORD, "whether the programs of a library store it", words=("true", "false")),
    Field("exceptions", Form.OTHER, "classes with rules of their own"),
    Field("reproduces", Form.FIELDS, "the version of a framework that it reproduces; the last field", fields=REPRODUCES),
)  # fmt: skip
EXCEPTION = (
    Field("classes", Form.TEXTS, "patterns of class names, without their packages", required=True),
    Field("because", Form.TEXT, "why", required=True),
    *(field for field in CONVENTION if field.name not in ("name", "doc", "compared", "stored", "exceptions", "reproduces")),
)

"""Names of pipelines resolve: those that diffusers registers for a model with a spec, and those that other frameworks name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import symflops
from symflops.cli.main import main
from symflops.library.catalog import UnknownModelError, catalogs
from symflops.library.lookup import by_config, read_config
from symflops.library.naming import named
from symflops.training.frameworks.verl_omni import DiffusionFlops
from tests.verify.pipelines import MAIN, described, held, registered, source, wanted

ALL = registered()
RESOLVED = {name: held(parts) for name, parts in ALL.items() if held(parts)}
UNSHIPPED = [  # what denoises is of a class without a spec
    "AnimateDiffPipeline", "AnimateDiffControlNetPipeline", "StableDiffusionControlNetXSPipeline", "KandinskyPriorPipeline",
    "StableVideoDiffusionPipeline", "Cosmos3OmniPipeline", "QwenImage21ModularPipeline",
]  # fmt: skip


def test_the_source_of_diffusers_is_read() -> None:
    """Annotations, those of a class that another one inherits, and components of blocks; nothing is imported."""
    assert ALL["QwenImageControlNetPipeline"]["controlnet"] == ("QwenImageControlNetModel", "QwenImageMultiControlNetModel")
    assert ALL["QwenImageControlNetPipeline"]["transformer"] == ("QwenImageTransformer2DModel",)
    assert ALL["AudioLDMPipeline"]["unet"] == ("UNet2DConditionModel",) and len(RESOLVED) > 200
    assert ALL["AnimateDiffPipeline"]["unet"] == ("UNet2DConditionModel", "UNetMotionModel")
    assert RESOLVED["Wan22VaceModularPipeline"] == {"wan_vace"} and RESOLVED["FluxControlNetPipeline"] == {"flux", "flux_controlnet"}
    assert RESOLVED["LDMTextToImagePipeline"] == {"unet_2d", "unet_2d_condition"} and RESOLVED["ZImageModularPipeline"] == {"z_image"}


def test_every_registered_pipeline_of_a_described_model_resolves_to_what_denoises() -> None:
    for name, specs in RESOLVED.items():
        found = by_config({"_class_name": name})[1]
        assert found in specs and named(name).spec == found, name
        main_part = next((ALL[name][part] for part in MAIN if part in ALL[name]), ())
        assert not main_part or found in {described()[kind] for kind in main_part if kind in described()}, name


def test_the_lists_of_the_specs_are_complete_and_no_pipeline_is_in_a_wrong_one() -> None:
    listed = {name: entry["pipelines"] for name, entry in catalogs()[-1].specs.items()}
    for spec, names in wanted().items():
        assert set(names) <= set(listed[spec]), spec
    for spec, names in listed.items():
        wrong = [name for name in names if name in ALL and spec not in held(ALL[name])]
        assert not wrong and len(set(names)) == len(names), (spec, wrong)


@pytest.mark.parametrize("name", UNSHIPPED)
def test_a_pipeline_whose_denoising_model_has_no_spec_is_refused(name: str) -> None:
    with pytest.raises(UnknownModelError, match="no spec"):
        by_config({"_class_name": name})


@pytest.mark.parametrize("name", ["QwenImageControlNetPipeline", "Wan22DanceGRPOPipelineWithLogProb", "QwenImageEditPlusPipelineWithLogProb"])
def test_a_config_that_names_a_pipeline_is_estimated(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    kind, batch = ("wan", {"latent": [[3, 8, 8]], "prompt": [7]}) if name.startswith("Wan") else ("qwen_image", {"latent": [24], "prompt": [7]})
    config = {"_class_name": name, "num_layers": 2}
    found = symflops.estimate(config, batch)
    assert (found["spec"], found["evidence"]["unread"]) == (kind, [])
    assert found["total"] == symflops.estimate({"num_layers": 2}, batch, spec=kind)["total"]
    for words in (["estimate", "--config", json.dumps(config)], ["explain", "--config", json.dumps(config), "--top", "1"], ["estimate", name]):
        assert main([*words, "--batch", json.dumps(batch), "--json"]) == 0
    capsys.readouterr()


def test_a_pipeline_that_runs_two_models_is_the_one_whose_config_is_given() -> None:
    assert by_config({"_class_name": "FluxControlNetPipeline"})[1] == "flux"
    assert by_config({"_class_name": "FluxControlNetPipeline", "num_mode": 4, "conditioning_embedding_channels": 4})[1] == "flux_controlnet"
    assert "flux_controlnet beside flux" in named("FluxControlNetPipeline").note
    assert named("sdxl").spec == "unet_2d_condition"


PARTS = {
    "scheduler": ["diffusers", "X"], "text_encoder": ["transformers", "CLIPTextModel"], "text_encoder_2": ["transformers", "T5EncoderModel"],
    "controlnet": ["diffusers", "FluxControlNetModel"], "transformer": ["diffusers", "FluxTransformer2DModel"], "vae": ["diffusers", "AutoencoderKL"],
}  # fmt: skip


def saved(folder: Path, pipeline: str, index: dict) -> Path:
    """A pipeline as diffusers saves it: an index, and a folder with a config for each model."""
    for name, (_, word) in index.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text(json.dumps({"_class_name": word}))
    (folder / "model_index.json").write_text(json.dumps({"_class_name": pipeline, **index}))
    return folder


def test_the_folder_of_a_pipeline_is_its_denoising_model_and_no_encoder(tmp_path: Path) -> None:
    assert read_config(str(saved(tmp_path / "all", "FluxControlNetPipeline", PARTS)))["_class_name"] == "FluxTransformer2DModel"
    motion = {**{name: PARTS[name] for name in ("text_encoder", "vae")}, "unet": ["diffusers", "UNetMotionModel"]}
    with pytest.raises(UnknownModelError, match=r"no spec describes the denoising model .*unet UNetMotionModel"):
        read_config(str(saved(tmp_path / "other", "AnimateDiffPipeline", motion)))
    (tmp_path / "all/transformer/config.json").unlink()
    (tmp_path / "all/controlnet/config.json").unlink()
    with pytest.raises(UnknownModelError, match="no transformer/config.json"):
        read_config(str(tmp_path / "all"))


def test_a_number_of_layers_that_a_config_of_diffusers_lacks_is_told_with_the_default_of_the_class() -> None:
    """VeRL-Omni's estimator reads ``config["num_layers"]`` and raises; the class of diffusers has 60."""
    text = (source() / "models/transformers/transformer_qwenimage.py").read_text("utf-8")
    default = int(re.search(r"num_layers: int = (\d+)", text.partition("class QwenImageTransformer2DModel")[2])[1])
    told = f"the config has no 'num_layers': {default} is the default of QwenImageTransformer2DModel"
    config = {"_class_name": "QwenImageTransformer2DModel", "num_attention_heads": 24}
    with pytest.warns(UserWarning, match=told):
        assert symflops.estimate(config, {"latent": [24], "prompt": [7]})["notes"] == [told]
    with pytest.warns(UserWarning, match=told):
        short = DiffusionFlops(config)
    whole = DiffusionFlops({**config, "num_layers": default})
    assert default == 60 and short.estimate_flops([24], [7], 1.0) == whole.estimate_flops([24], [7], 1.0)
    assert not symflops.estimate({**config, "num_layers": 2}, {"latent": [24], "prompt": [7]})["notes"]
    assert not symflops.estimate({"architectures": ["LlamaForCausalLM"], "hidden_size": 4096}, {"text": [8]})["notes"]

# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors, on the host and on a GPU where there is one."""

import subprocess
import sys

import cairn
import numpy as np
import pytest
from cairn.serialization import AsyncCheckpointManager, CheckpointInterval, Checkpointer

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(),
                                                                reason="there is no GPU"))]
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32",
          "float64", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c"


def same(a, b):
    assert isinstance(b, torch.Tensor), type(b)
    assert (a.dtype, a.shape, a.device) == (b.dtype, b.shape, b.device)
    raw = [x.detach().cpu().contiguous().flatten().view(torch.uint8) for x in (a, b)]
    assert torch.equal(*raw)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type(path, device, dtype):
    values = torch.arange(24, device=device).reshape(2, 3, 4) % 2
    tensor = values.to(getattr(torch, dtype))
    tree = {"w": tensor, "turned": tensor.permute(2, 0, 1), "part": tensor[:, ::2],
            "one": tensor[0, 0, 0], "none": tensor[:0]}
    for layout in ("zarr2", "safetensors")[:1 if dtype == "complex128" else 2]:
        cairn.save(tree, path / layout, layout=layout)
        loaded = cairn.load(path / layout, template=tree)
        for name, saved in tree.items():
            same(saved, loaded[name])


@pytest.mark.parametrize("device", DEVICES)
def test_a_training_goes_on(path, device):
    torch.manual_seed(0)
    data = torch.randn(64, 16, device=device)

    def make():
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32),
                                    torch.nn.Linear(32, 1)).to(device)
        return model, torch.optim.AdamW(model.parameters(), lr=1e-2)

    def train(model, adam, steps):
        losses = []
        for _ in range(steps):
            adam.zero_grad()
            loss = (model(data) ** 2).mean()
            loss.backward()
            adam.step()
            losses.append(loss.item())
        return losses

    model, adam = make()
    train(model, adam, 5)
    cairn.save({"model": model.state_dict(), "adam": adam.state_dict()}, path)
    wanted = train(model, adam, 5)
    other, other_adam = make()
    state = cairn.load(path, template={"model": other.state_dict(), "adam": adam.state_dict()})
    other.load_state_dict(state["model"])
    other_adam.load_state_dict(state["adam"])
    assert train(other, other_adam, 5) == wanted
    plain = cairn.load(path)
    assert isinstance(plain["model"]["0.weight"], np.ndarray)


@pytest.mark.parametrize("device", DEVICES)
def test_what_was_there_at_the_call_is_saved(path, device):
    tensor = torch.zeros(1 << 22, device=device)
    handle = cairn.save_async({"w": tensor}, path)
    tensor.fill_(7)
    del tensor
    handle.wait()
    assert not cairn.load(path)["w"].any()


def test_lazily_conjugated_numbers(path):
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    cairn.save({"w": tensor.conj(), "imag": tensor.conj().imag}, path)
    loaded = cairn.load(path)
    assert loaded["w"].tolist() == [1 - 2j, 3 + 4j]
    assert loaded["imag"].tolist() == [-2, 4]


def test_gradients_are_asked_for_as_in_the_template(path):
    parameter = torch.nn.Parameter(torch.ones(3))
    cairn.save({"w": parameter}, path)
    assert cairn.load(path, template={"w": parameter})["w"].requires_grad
    assert not cairn.load(path, template={"w": parameter.detach()})["w"].requires_grad


def test_a_template_casts_floats(path):
    cairn.save({"w": torch.ones(3, dtype=torch.float64)}, path)
    loaded = cairn.load(path, template={"w": torch.zeros(3, dtype=torch.bfloat16)})["w"]
    same(torch.ones(3, dtype=torch.bfloat16), loaded)


@pytest.mark.parametrize("device", DEVICES)
def test_a_run_gives_tensors_for_those_of_its_template(path, device):
    state = {"w": torch.arange(6.0, device=device).reshape(2, 3).to(torch.bfloat16), "n": 3}
    run = Checkpointer(path, None, [CheckpointInterval(every=1)])
    run.on_step(None, state, step=1)
    found, about = run.load_checkpoint(None, template=state)
    same(state["w"], found["w"])
    assert found["n"] == 3 and about["step"] == 1
    manager = AsyncCheckpointManager()
    manager.save_pytree(state, path / "one", prefix="model")
    found, _ = manager.load_pytree(path / "one", None, prefix="model", template=state)
    same(state["w"], found["w"])


def test_a_template_without_memory_gives_tensors_on_the_host(path):
    cairn.save({"w": torch.arange(3.0)}, path)
    same(torch.arange(3.0), cairn.load(path, template={"w": torch.empty(3, device="meta")})["w"])


def test_tensors_of_the_template_stay_where_nothing_fits(path):
    cairn.save({"w": torch.arange(6.0)}, path)
    template = {"w": torch.ones(4), "new": torch.ones(2)}
    loaded = cairn.load(path, template=template, strict_shapes=False)
    assert loaded["w"] is template["w"] and loaded["new"] is template["new"]
    size = {"size": torch.Size([2, 3])}
    cairn.save(size, path)
    assert cairn.load(path, template=size) == size


def test_what_cannot_be_saved_is_all_named(path):
    linear = torch.nn.Linear(2, 2)
    tree = {"a": linear, "b": torch.optim.SGD(linear.parameters()), "c": torch.ones(3).to_sparse(),
            "d": torch.empty(3, device="meta")}
    with pytest.raises(cairn.InvalidArgumentError) as caught:
        cairn.save(tree, path)
    for text in ("a is a Linear of PyTorch: save its state_dict()", "b is a SGD of PyTorch",
                 "c is a tensor of PyTorch that is sparse", "d is a tensor of PyTorch without"):
        assert text in str(caught.value)
    assert not path.exists()


def test_types_that_numpy_lacks_need_nothing_else(path):
    program = f"""
import sys
sys.modules["ml_dtypes"] = None
import cairn, torch
tensor = torch.arange(5).to(torch.bfloat16)
cairn.save({{"w": tensor}}, {str(path)!r})
assert torch.equal(cairn.load({str(path)!r}, template={{"w": tensor}})["w"], tensor)
try:
    cairn.load({str(path)!r})
except cairn.UnsupportedError as error:
    print(error.reason)
"""
    done = subprocess.run([sys.executable, "-c", program], text=True, capture_output=True)
    assert done.stdout == "python/no-ml-dtypes\n", done


def test_tensors_on_the_host_are_filled_in_place(tmp_path):
    cairn.save({"a": torch.arange(6.0).reshape(2, 3), "b": [torch.ones(2, dtype=torch.bfloat16)]},
               tmp_path)
    out = {"a": torch.zeros(2, 3), "b": [torch.zeros(2, dtype=torch.bfloat16)]}
    found = cairn.load(tmp_path, out=out)
    assert found["a"] is out["a"] and found["b"][0] is out["b"][0]
    assert torch.equal(out["a"], torch.arange(6.0).reshape(2, 3)) and out["b"][0].sum() == 2
    with pytest.raises(ValueError, match="a is a tensor.*b.0 is a tensor"):
        cairn.load(tmp_path, out={"a": torch.zeros(2, 3, device="meta"),
                                  "b": [torch.zeros(2, dtype=torch.complex64).conj()]})

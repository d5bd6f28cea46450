# SPDX-License-Identifier: Apache-2.0
"""One rank of a job of PyTorch with DTensors.

    dtensor_program.py PORT RANK COUNT save PATH SEED    cases of this seed
    dtensor_program.py PORT RANK COUNT load PATH SEED    the same, placed by another seed
    dtensor_program.py PORT RANK COUNT model PATH ""     a model of FSDP over tensor parallelism
    dtensor_program.py PORT RANK COUNT run PATH START    two steps of a run that has come so far
    dtensor_program.py PORT RANK COUNT refuse PATH ""    what is none of these, and what stays
"""

import random
import sys

import cairn
import torch
import torch.distributed as dist
from cairn.serialization import CheckpointInterval, Checkpointer, RetentionRules
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.placement_types import _StridedShard

SHAPES = {"row": (16, 6), "uneven": (5, 7), "few": (3, 4), "deep": (2, 6, 4), "one": (),
          "none": (0, 4)}
TYPES = {"row": torch.bfloat16, "uneven": torch.float32, "few": torch.int64,
         "deep": torch.float8_e5m2, "one": torch.float64, "none": torch.float32}


def whole(name):
    count = max(1, torch.Size(SHAPES[name]).numel())
    values = torch.arange(count)[:torch.Size(SHAPES[name]).numel()] % 100
    return values.reshape(SHAPES[name]).to(torch.float32).to(TYPES[name])


def meshes(count):
    yield "all", init_device_mesh("cpu", (count,))
    if count == 4:
        both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("x", "y"))
        turned = DeviceMesh("cpu", [[0, 3], [2, 1]], mesh_dim_names=("x", "y"))
        yield from {"both": both, "x": both["x"], "y": both["y"], "turned": turned["x"]}.items()


def placed(choose, mesh, shape):
    ways = [Replicate(), *map(Shard, range(len(shape)))]
    return [choose.choice(ways) for _ in range(mesh.ndim)]


def cases(seed, count):
    choose = random.Random(seed)
    return {f"{name}-{kind}{number}":
            distribute_tensor(whole(name), mesh, placed(choose, mesh, shape), src_data_rank=None)
            for kind, mesh in meshes(count)
            for name, shape in SHAPES.items() for number in range(6)}


def raw(tensor):
    return bytes(tensor.detach().contiguous().flatten().view(torch.uint8).tolist())


def check_same(found, expected):
    assert found.dtype == expected.dtype and found.shape == expected.shape, (found, expected)
    assert raw(found) == raw(expected), (found, expected)


def save(path, seed):
    tree = cases(seed, dist.get_world_size())
    handle = cairn.save_async(tree, path)
    for tensor in tree.values():  # which belongs to the caller again
        tensor.to_local().fill_(1)
    handle.wait()


def load(path, seed):
    template = cases(seed, dist.get_world_size())
    loaded = cairn.load(path, template=template, keys=list(template))
    for name, expected in template.items():
        assert type(loaded[name]) is DTensor and loaded[name].placements == expected.placements
        assert loaded[name].shape == expected.shape
        check_same(loaded[name].to_local(), expected.to_local())


def make_model():
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                                   parallelize_module)
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 12), torch.nn.ReLU(),
                                torch.nn.Linear(12, 8))
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], {"1": ColwiseParallel(), "3": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    return model, torch.optim.Adam(model.parameters(), lr=0.1)


def train(model, adam):
    adam.zero_grad()
    loss = model(torch.arange(32.0).reshape(4, 8)).square().mean()
    loss.backward()
    adam.step()
    return float(loss.detach())


def run_model(path, _):
    model, adam = make_model()
    train(model, adam)
    state = {"model": model.state_dict(), "adam": adam.state_dict()}
    strided = [p for p in model.state_dict().values() if "Strided" in str(p.placements)]
    assert strided, "the model is to have parts of parts"
    assert model.state_dict()["0.weight"].device_mesh.size() == 2, "and some on a slice of the mesh"
    expected = {name: tensor.full_tensor() for name, tensor in model.state_dict().items()}
    cairn.save(state, path)
    losses = [train(model, adam) for _ in range(3)]
    again, other = make_model()
    train(again, other)
    found = cairn.load(path, template={"model": again.state_dict(), "adam": other.state_dict()})
    for name, tensor in found["model"].items():
        check_same(tensor.full_tensor(), expected[name])
    again.load_state_dict(found["model"])
    other.load_state_dict(found["adam"])
    assert [train(again, other) for _ in range(3)] == losses
    if dist.get_rank() == 0:
        torch.save(expected, path + ".pt")


def run_steps(path, start):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def state(step):
        spread = torch.arange(24.0).reshape(6, 4) + step
        return {"w": distribute_tensor(spread, mesh, [Shard(0)], src_data_rank=None),
                "b": torch.full((3,), float(step))}

    run = Checkpointer(path, None, [CheckpointInterval(every=1)],
                       retention=RetentionRules(keep_last_n=2))
    found = run.load_checkpoint_if_any(None, template=state(0))
    done = 0
    if found is not None:
        tree, about = found
        done = about["step"]
        check_same(tree["w"].to_local(), state(done)["w"].to_local())
        check_same(tree["b"], state(done)["b"])
    assert done == int(start)
    for step in (done + 1, done + 2):
        run.on_step(None, state(step), step=step)
    run.wait_until_finished()


def check_refused(call, *words):
    try:
        call()
    except cairn.InvalidArgumentError as error:
        assert all(word in str(error) for word in words), error
    else:
        raise AssertionError("it was done")


def refuse(path, _):
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    partial = DTensor.from_local(torch.ones(4), mesh, [Partial()])
    odd = DTensor.from_local(torch.ones(4), mesh, [_StridedShard(0, split_factor=2)],
                             shape=torch.Size([8]), stride=(1,))
    for tensor in (partial, odd):
        tree = {"a": {"b": tensor}, "fine": torch.ones(2)}
        check_refused(lambda tree=tree: cairn.save(tree, path), "a.b", "redistribute()")
    alone = distribute_tensor(torch.ones(4), DeviceMesh("cpu", [0]), [Shard(0)], src_data_rank=None)
    check_refused(lambda: cairn.save({"w": alone}, path), "w", "on 1 of 2 ranks")
    whole_tensor = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)], src_data_rank=None)
    cairn.save({"w": whole_tensor}, path)
    check_refused(lambda: cairn.load(path, template={"w": partial}), "w", "redistribute()")
    # What does not fit stays as it is.
    other = distribute_tensor(torch.full((6,), 7.0), mesh, [Shard(0)], src_data_rank=None)
    template = {"w": other, "new": other}
    kept = cairn.load(path, template=template, strict_shapes=False)
    assert kept["w"] is other and kept["new"] is other
    # Without memory of its own.
    empty = DTensor.from_local(torch.empty(2, device="meta"), mesh, [Shard(0)])
    check_same(cairn.load(path, template={"w": empty})["w"].to_local(), whole_tensor.to_local())


def main():
    port, rank, count, do, path, seed = sys.argv[1:]
    dist.init_process_group("gloo", init_method=f"tcp://localhost:{port}", rank=int(rank),
                            world_size=int(count))
    orders = {"save": save, "load": load, "model": run_model, "run": run_steps, "refuse": refuse}
    orders[do](path, seed)
    dist.barrier()
    dist.destroy_process_group()


main()

# SPDX-License-Identifier: Apache-2.0
"""A small training loop that goes on where it was stopped: flax, optax, a sharded state."""

import sys

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from cairn.serialization import Checkpointer, CheckpointInterval
from jax.sharding import Mesh, NamedSharding, PartitionSpec

STEPS = 30
EVERY = 3


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(1)(nn.Dropout(0.1, deterministic=False)(nn.tanh(nn.Dense(16)(x))))


MODEL, OPTIMIZER = Model(), optax.adam(1e-2)


def first_state(mesh):
    params = MODEL.init({"params": jax.random.key(0), "dropout": jax.random.key(1)},
                        jnp.ones((1, 8)))
    state = {"params": params, "opt": OPTIMIZER.init(params), "step": jnp.int32(0),
             "rng": jax.random.key_data(jax.random.key(2))}

    def place(leaf):
        is_split = leaf.ndim == 2 and leaf.shape[0] % 8 == 0
        return jax.device_put(leaf, NamedSharding(
            mesh, PartitionSpec("data") if is_split else PartitionSpec()))

    return jax.tree.map(place, state)


def train_step(state):
    """Donates its state: whoever saves it has taken what it needs before."""
    rng, batch, dropout = jax.random.split(jax.random.wrap_key_data(state["rng"]), 3)
    x = jax.random.normal(batch, (32, 8))

    def loss_of(params):
        guess = MODEL.apply(params, x, rngs={"dropout": dropout})
        return jnp.mean((guess[:, 0] - jnp.sin(x.sum(1))) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(state["params"])
    updates, opt = OPTIMIZER.update(gradients, state["opt"], state["params"])
    return {"params": optax.apply_updates(state["params"], updates), "opt": opt,
            "step": state["step"] + 1, "rng": jax.random.key_data(rng)}, loss


def losses(base):
    """Yields step and loss; with a folder, from the latest checkpoint on."""
    mesh = Mesh(np.array(jax.devices()), ("data",))
    state, step = first_state(mesh), jax.jit(train_step, donate_argnums=0)
    run = None if base is None else Checkpointer(base, None, [CheckpointInterval(every=EVERY)])
    found = None if run is None else run.load_checkpoint_if_any(mesh, template=state)
    state = state if found is None else found[0]
    while int(state["step"]) < STEPS:
        state, loss = step(state)
        if run is not None:
            run.on_step(mesh, state, step=int(state["step"]), extras={"loss": float(loss)})
        yield int(state["step"]), float(loss)


if __name__ == "__main__":
    for number, value in losses(sys.argv[1]):
        print(number, value.hex(), flush=True)

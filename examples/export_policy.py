"""A policy as ONNX file, flown as controller: linear feedback of the load's place and velocity."""

import sys
import tempfile
from pathlib import Path

import numpy as np

try:
    import onnx
    import onnxruntime  # noqa: F401 (musls reads the file with it)
except ImportError:
    sys.exit(f"this example needs ONNX: `{sys.executable} -m pip install onnx onnxruntime`")

import musls

DRONES = 3
OBSERVED = 18 * (1 + DRONES) + 2 * DRONES + 6


def export(path: Path) -> None:
    """Write the policy; a trained network of PyTorch is written by `torch.onnx.export`."""
    weights = np.zeros((OBSERVED, 3 * DRONES), np.float32)
    for axis in range(3):  # shifts all drones against the load's error and velocity
        weights[axis, axis::3] = -0.6
        weights[3 + axis, axis::3] = -0.8  # velocities are seen over 2 m/s
    number, tensor = onnx.TensorProto.FLOAT, onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["observation", "weights"], ["action"])],
        "policy",
        [tensor("observation", number, [1, OBSERVED])],
        [tensor("action", number, [1, 3 * DRONES])],
        [onnx.numpy_helper.from_array(weights, "weights")],
    )
    opset = onnx.helper.make_opsetid("", 17)
    model = onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
    onnx.helper.set_model_props(model, {"level": "drone_setpoints", "action_scale": "1"})
    onnx.save(model, path)


def main() -> None:
    """Fly the circle with the policy and with the formation alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.onnx"
        export(path)
        learned = {"kind": "learned", "policy": str(path)}
        for controller in (learned, {"kind": "formation"}):
            scenario = musls.load_scenario("circle", {"start": "air", "controller": controller})
            run = musls.fly(scenario)
            print(controller["kind"], run.errors())


if __name__ == "__main__":
    main()

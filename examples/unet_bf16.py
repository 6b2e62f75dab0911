"""Trains a U-Net in bf16 on a CPU: all weights, images and gradients have half the bytes.

    python examples/unet_bf16.py            # 20 s, the most of it in PyTorch's own kernels
    python examples/unet_bf16.py --skip_own

Prints the time of a training step with PyTorch's kernels and with convgrad's, and the loss as it
learns to find discs in noise.
"""

import argparse
import time

import convgrad.torch
import torch
from torch import nn
from torch.nn import functional as F


def two_convolutions(source, out):
    return nn.Sequential(
        nn.Conv2d(source, out, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(out, out, 3, padding=1),
        nn.ReLU(),
    )


class UNet(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        widths = [width << i for i in range(depth + 1)]
        pairs = list(zip(widths, widths[1:]))
        self.first = two_convolutions(1, width)
        self.down = nn.ModuleList(two_convolutions(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.joined = nn.ModuleList(two_convolutions(2 * a, a) for a, _ in reversed(pairs))
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        levels = [self.first(x)]
        for layer in self.down:
            levels.append(layer(F.max_pool2d(levels[-1], 2)))
        x = levels.pop()
        for up, joined in zip(self.up, self.joined):
            x = joined(torch.cat([up(x), levels.pop()], 1))
        return self.last(x)


def discs(count, extent, seed):
    """(images, masks): a bright disc each, in noise."""
    random = torch.Generator().manual_seed(seed)
    centre = torch.rand(count, 2, 1, 1, generator=random) * extent
    radius = (0.1 + 0.2 * torch.rand(count, 1, 1, generator=random)) * extent
    y, x = torch.meshgrid(torch.arange(extent), torch.arange(extent), indexing="ij")
    inside = ((y - centre[:, 0]) ** 2 + (x - centre[:, 1]) ** 2 < radius**2).float()
    noise = torch.randn(count, extent, extent, generator=random)
    return (inside + 0.7 * noise)[:, None], inside[:, None]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--extent", type=int, default=64, help="of the images")
    parser.add_argument("--width", type=int, default=16, help="channels of the first level")
    parser.add_argument("--skip_own", action="store_true", help="do not time PyTorch's kernels")
    options = parser.parse_args()

    torch.manual_seed(0)
    network = UNet(options.width).to(torch.bfloat16)
    # Small steps vanish in bf16: the optimizer works on an f32 copy.
    main_weights = [p.detach().float() for p in network.parameters()]
    optimizer = torch.optim.Adam(main_weights, lr=2e-3)

    def step(seed):
        images, masks = discs(options.batch, options.extent, seed)
        network.zero_grad(set_to_none=True)
        logits = network(images.to(torch.bfloat16))
        loss = F.binary_cross_entropy_with_logits(logits.float(), masks)
        loss.backward()
        for weights, p in zip(main_weights, network.parameters()):
            weights.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for weights, p in zip(main_weights, network.parameters()):
                p.copy_(weights)
        return loss.item()

    def timed(seed):
        begin = time.perf_counter()
        loss = step(seed)
        return loss, time.perf_counter() - begin

    print(f"PyTorch {torch.__version__}, {torch.get_num_threads()} threads, batch {options.batch}, "
          f"{options.extent}x{options.extent} images, bf16")  # fmt: skip
    convgrad.torch.enable()
    results = [timed(seed) for seed in range(options.steps)]
    convgrad.torch.disable()
    ours = min(seconds for _, seconds in results)
    print(f"one step on convgrad: {ours * 1e3:.1f} ms")
    if not options.skip_own:
        try:
            own = min(timed(options.steps + i)[1] for i in range(2))
            print(
                f"one step on PyTorch's kernels: {own * 1e3:.1f} ms, {own / ours:.1f} times as long"
            )
        except RuntimeError as error:
            print(f"PyTorch's kernels: {error}")
    print(f"loss {results[0][0]:.3f} at first, {results[-1][0]:.3f} after {len(results)} steps")


if __name__ == "__main__":
    main()

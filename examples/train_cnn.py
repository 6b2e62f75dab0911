"""Trains a residual network on PyTorch's own CPU kernels and, by one more line, on convgrad's.

    python examples/train_cnn.py            # about half a minute
    python examples/train_cnn.py --steps 2 --batch 4    # a few seconds

Prints the time of a training step with and without convgrad, where it goes, and that training on
convgrad ends in the same weights, bit for bit, whatever the number of threads. Data is generated:
gratings of ten directions, in noise.
"""

import argparse
import math
import time

import convgrad.torch
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, source, out, stride):
        super().__init__()
        self.first = nn.Conv2d(source, out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        self.short = (
            nn.Conv2d(source, out, 1, stride, bias=False) if source != out else nn.Identity()
        )

    def forward(self, x):
        y = self.second(F.relu(self.norms[0](self.first(x))))
        return F.relu(self.norms[1](y) + self.short(x))


def residual_network(classes=10):
    """The shape of ResNet-18."""
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
              nn.MaxPool2d(3, 2, 1)]  # fmt: skip
    widths = [64, 64, 128, 256, 512]
    for source, out in zip(widths, widths[1:]):
        layers += [Block(source, out, 1 if source == out else 2), Block(out, out, 1)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Conv2d(512, classes, 1), nn.Flatten())


def gratings(count, extent, seed):
    """Images of stripes, and which of ten directions they have."""
    random = torch.Generator().manual_seed(seed)
    labels = torch.randint(0, 10, (count,), generator=random)
    y, x = torch.meshgrid(torch.arange(extent), torch.arange(extent), indexing="ij")
    angle = (labels * math.pi / 10)[:, None, None]
    waves = torch.sin(0.6 * (x * torch.cos(angle) + y * torch.sin(angle)))
    noise = torch.randn(count, 3, extent, extent, generator=random)
    return waves[:, None] + 0.5 * noise, labels


def step(network, optimizer, images, labels):
    optimizer.zero_grad(set_to_none=True)
    loss = F.cross_entropy(network(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def made(seed=0):
    torch.manual_seed(seed)
    network = residual_network()
    return network, torch.optim.SGD(network.parameters(), lr=0.02, momentum=0.9)


def times_of_a_step(steps, images, labels):
    """(PyTorch, convgrad): the best of steps that take turns."""
    network, optimizer = made()
    best = [math.inf, math.inf]
    for i in range(steps + 1):  # the first is for warming up
        for which in (0, 1):
            if which:
                convgrad.torch.enable()
            begin = time.perf_counter()
            step(network, optimizer, images, labels)
            seconds = time.perf_counter() - begin
            if which:
                convgrad.torch.disable()
            if i:
                best[which] = min(best[which], seconds)
    return best


def train(threads, steps, batch, extent):
    torch.set_num_threads(threads)
    network, optimizer = made()
    losses = []
    with convgrad.torch.enabled():
        for i in range(steps):
            losses.append(step(network, optimizer, *gratings(batch, extent, seed=i)))
    return losses, [p.detach() for p in network.parameters()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--extent", type=int, default=64, help="of the images")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    if options.extent < 64:  # the last layers see 1x1 images then
        print("below 64x64, PyTorch's batch norm has other bits for other numbers of threads")

    torch.set_num_threads(options.threads)
    images, labels = gratings(options.batch, options.extent, seed=99)
    own, replaced = times_of_a_step(options.steps, images, labels)
    print(f"PyTorch {torch.__version__}, {options.threads} threads, batch {options.batch}, "
          f"{options.extent}x{options.extent} images, f32")  # fmt: skip
    print(f"one step: PyTorch {own * 1e3:.0f} ms, convgrad {replaced * 1e3:.0f} ms, "
          f"{own / replaced:.2f} times as fast")  # fmt: skip

    network, optimizer = made()
    with convgrad.torch.profile() as report:
        step(network, optimizer, images, labels)
    print(report)

    runs = {threads: train(threads, options.steps, options.batch, options.extent)
            for threads in (1, max(2, options.threads))}  # fmt: skip
    (one, weights), (_, others) = runs.values()
    print(f"loss {one[0]:.3f} at first, {one[-1]:.3f} after {len(one)} steps")
    same = all(torch.equal(a, b) for a, b in zip(weights, others))
    counts = " and ".join(map(str, runs))
    print(f"weights after training on {counts} threads: {'the same bits' if same else 'DIFFERENT'}")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())

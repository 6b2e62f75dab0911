"""PyTorch with its own kernels and with convgrad's, in turns: training steps, blocks and layers.

    python bench/pytorch_steps.py [--threads 2] [--batch problems/layers.txt]
                                  [steps blocks layers overhead]

Each figure is the best of runs that take turns within one process. Prints Markdown. Layers are those
of all the lists in problems/, in both memory formats, and last come those that are slower. Of blocks
the last column is what is no convolution and stays PyTorch's: activations, norms, sums.
"""

import argparse
import contextlib
import itertools
import os
import re
import sys
import time

import convgrad.torch
import torch
from torch import nn
from torch.nn import functional as F

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "examples"))


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def best_of_turns(call, least_seconds=0.6, most_seconds=6.0):
    """(PyTorch, convgrad) seconds, warm; None: PyTorch has no kernel. What is slow runs once."""
    best = [None, None]
    spent = 0.0
    for turn in itertools.count():
        for i in range(2):
            try:
                with convgrad.torch.enabled() if i == 1 else contextlib.nullcontext():
                    seconds = timed(call)
            except RuntimeError:
                if i == 1:
                    raise
                seconds = 0.05
            else:
                if turn > 0:
                    best[i] = min(best[i] or seconds, seconds)
            spent += seconds
        if turn >= 2 and spent > least_seconds or turn == 1 and spent > most_seconds:
            return tuple(best)


def print_row(name, own, replaced, *more):
    own_text = "-" if own is None else f"{own * 1e3:.2f}"
    ratio = "-" if own is None else f"{own / replaced:.2f}"
    cells = [name, own_text, f"{replaced * 1e3:.2f}", ratio, *(f"{s * 1e3:.2f}" for s in more)]
    print(f"| {' | '.join(cells)} |", flush=True)


def best_without_convolutions(call, least_seconds=1.0):
    """Seconds of all but the convolutions and their gradients: the whole, with convgrad, less what
    its kernels take by its own clock, which leaves the microseconds of the bridge in."""
    best, spent = float("inf"), 0.0
    with convgrad.torch.enabled():
        call()
        while spent < least_seconds:
            before = convgrad.torch._bridge.library_seconds
            seconds = timed(call)
            inside = convgrad.torch._bridge.library_seconds - before
            best, spent = min(best, seconds - inside), spent + seconds
    return best


class ConvNeXtBlock(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.GroupNorm(1, width)
        self.wide = nn.Conv2d(width, 4 * width, 1)
        self.narrow = nn.Conv2d(4 * width, width, 1)

    def forward(self, x):
        return x + self.narrow(F.gelu(self.wide(self.norm(self.depthwise(x)))))


class MobileNetV2Block(nn.Module):
    def __init__(self, width, expansion=6):
        super().__init__()
        inner = expansion * width
        self.layers = nn.Sequential(
            nn.Conv2d(width, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, inner, 3, padding=1, groups=inner, bias=False),
            nn.BatchNorm2d(inner), nn.ReLU6(),
            nn.Conv2d(inner, width, 1, bias=False), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return x + self.layers(x)


def forward_and_backward(network, x):
    def run():
        network.zero_grad(set_to_none=True)
        network(x.requires_grad_()).sum().backward()

    return run


def table(title, *more):
    columns = [title, "PyTorch ms", "convgrad ms", "times as fast", *more]
    print(f"\n| {' | '.join(columns)} |\n{'|---' * len(columns)}|")


def steps():
    import train_cnn
    import unet_bf16

    table("training step")
    images, labels = train_cnn.gratings(16, 64, seed=1)
    network, optimizer = train_cnn.made()
    times = best_of_turns(lambda: train_cnn.step(network, optimizer, images, labels), 6)
    print_row("ResNet-18-like, f32, batch 16, 64x64", *times)
    unet = unet_bf16.UNet(16).to(torch.bfloat16)
    x = torch.randn(4, 1, 64, 64, dtype=torch.bfloat16)
    print_row("U-Net-like, bf16, batch 4, 64x64", *best_of_turns(forward_and_backward(unet, x)))


def blocks():
    table("block, forward and backward, f32, batch 8", "of that no convolution, ms")
    for name, block, extent in (
        ("ConvNeXt-like, 96 channels, 56x56", ConvNeXtBlock(96), (96, 56)),
        ("ConvNeXt-like, 384 channels, 14x14", ConvNeXtBlock(384), (384, 14)),
        ("MobileNetV2-like, 24 channels, 56x56", MobileNetV2Block(24), (24, 56)),
        ("MobileNetV2-like, 96 channels, 14x14", MobileNetV2Block(96), (96, 14)),
    ):
        x = torch.randn(8, extent[0], extent[1], extent[1])
        for layout in (torch.contiguous_format, torch.channels_last):
            text = "channels last" if layout == torch.channels_last else "contiguous"
            shaped = block.to(memory_format=layout)
            call = forward_and_backward(shaped, x.contiguous(memory_format=layout))
            times = best_of_turns(call, 2)
            print_row(f"{name}, {text}", *times, best_without_convolutions(call))


def number(line, key, otherwise=None):
    found = re.search(rf"(?<![a-z]){key}(\d+)", line)
    return int(found.group(1)) if found else otherwise


def problem(line, transposed):
    """(name, arguments of aten::convolution but the tensors, shapes of source and weight) of a
    problem line. Zeros are as many after an axis as before it, as PyTorch has them: of a causal
    convolution, whose line has none after, a few results more."""
    name = re.search(r'n"([^"]*)"', line)
    line = re.sub(r'_?n".*', "", line)
    axes = [a for a in "dhw" if number(line, "i" + a) is not None]
    if axes == ["h"]:
        axes = ["h", "h"]  # only h given: copied to w
    at = lambda key, otherwise: [number(line, key + a, otherwise) for a in axes]
    groups = number(line, "g", 1)
    ic, oc, mb = number(line, "ic"), number(line, "oc"), number(line, "mb", 2)
    dilation, stride, padding, k = [d + 1 for d in at("d", 0)], at("s", 1), at("p", 0), at("k", 1)
    x = (mb, ic, *at("i", None))
    w = (ic, oc // groups, *k) if transposed else (oc, ic // groups, *k)
    more = [0] * len(axes)
    if transposed:
        sizes = zip(x[2:], stride, padding, dilation, k)
        least = [(i - 1) * s - 2 * p + d * (taps - 1) + 1 for i, s, p, d, taps in sizes]
        more = [max(0, (o or size) - size) for o, size in zip(at("o", None), least)]
    return (
        name.group(1) if name else line,
        (stride, padding, dilation, transposed, more, groups),
        x,
        w,
    )


def problems_of(files):
    """The problems of files, each once; lines are of convolutions until they say --deconv."""
    seen = set()
    for path in files:
        transposed = False
        with open(path, encoding="utf-8") as file:
            for line in map(str.strip, file):
                words = line.split()
                if "--conv" in words or "--deconv" in words:
                    transposed = "--deconv" in words
                if re.match(r"(g\d+_?)?(mb|ic)\d", line) is None:
                    continue
                name, *rest = problem(line, transposed)
                if str(rest) not in seen:
                    seen.add(str(rest))
                    yield (name, *rest)


def calls_of(x, w, geometry):
    y = torch.ops.aten.convolution(x, w, None, *geometry)
    dy = torch.randn_like(y)  # of y's memory format
    yield "forward", lambda: torch.ops.aten.convolution(x, w, None, *geometry)
    for what, mask in (("of source", [True, False, False]), ("of weight", [False, True, False])):
        yield what, lambda: torch.ops.aten.convolution_backward(
            dy, x, w, None, *geometry, mask)  # fmt: skip


def layers(files):
    ratios = []
    for channels_last in (False, True):
        text = "channels last" if channels_last else "contiguous"
        table(f"layer, {text} f32")
        for name, geometry, x_shape, w_shape in problems_of(files):
            if channels_last and len(x_shape) == 3:
                continue  # PyTorch has no such format for lines
            x, w = torch.randn(x_shape), torch.randn(w_shape)
            if channels_last:
                layout = torch.channels_last if x.dim() == 4 else torch.channels_last_3d
                x, w = x.contiguous(memory_format=layout), w.contiguous(memory_format=layout)
            for what, call in calls_of(x, w, geometry):
                own, replaced = best_of_turns(call, 0.3, 3.0)
                print_row(f"{name} {what}", own, replaced)
                ratios.append((own / replaced, f"{name} {what}, {text}"))
    ratios.sort()
    slower = [f"{name} {ratio:.2f}" for ratio, name in ratios if ratio < 0.95]
    print(f"\nslower than PyTorch by more than 5 %: {len(slower)} of {len(ratios)}")
    for line in slower or [f"least: {name} {ratio:.2f}" for ratio, name in ratios[:5]]:
        print(f"  {line}")


def overhead():
    """Of the smallest call over the library's own time: by the bridge's kernels, which are C++, and
    by the plain functions, on which a bridge in Python would stand. PyTorch's own part comes on top
    of both. Where it has to be asked which of its backends is replaced, that is the bridge's."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    image = torch.randn(1, 4, 4, 4)
    image_last = image.to(memory_format=torch.channels_last)
    volume = torch.randn(1, 4, 4, 4, 4).to(memory_format=torch.channels_last_3d)
    with convgrad.torch.enabled():
        bridge = convgrad.torch._bridge
    print("\n| smallest call, us | library | bridge beyond it | plain functions beyond it |")
    print("|---|---|---|---|")
    for name, x, taps in (("3x3", image, 3), ("1x1, channels-last source, asks", image_last, 1),
                          ("3x3x3, channels last, asks", volume, 3)):  # fmt: skip
        axes = x.dim() - 2
        w = torch.randn(4, 4, *[taps] * axes) / 16
        pad = [taps // 2] * axes
        geometry = ([1] * axes, pad, [1] * axes, False, [0] * axes, 1)
        window = dict(strides=geometry[0], pads_begin=pad, pads_end=pad, dilations=geometry[2],
                      threads=1, data_format="NCX", weights_format="OIX")  # fmt: skip
        calls = {
            "forward": (lambda: bridge.convolution(x, w, None, *geometry),
                        lambda: convgrad.convolution(x, w, **window)),
            "backward": (lambda: bridge.convolution_backward(x, x, w, [4], *geometry, [True] * 3),
                         lambda: convgrad.convolution_backward(x, w, x, **window)),
        }  # fmt: skip
        for direction, (of_bridge, plain) in calls.items():
            best = [float("inf")] * 3
            for _ in range(100):
                before = bridge.library_seconds
                seconds = timed(lambda: [of_bridge() for _ in range(100)])
                library = bridge.library_seconds - before
                plainly = timed(lambda: [plain() for _ in range(100)])
                best = list(map(min, best, (library, seconds - library, plainly)))
            library, beyond, plainly = (seconds / 100 * 1e6 for seconds in best)
            print(f"| {direction}, {name} | {library:.1f} | {beyond:.1f} | {plainly - library:.1f} |",
                  flush=True)  # fmt: skip
    torch.set_num_threads(threads)


# Layer lists; the others of the folder are corners and problems of users.
LISTS = ("layers", "convnext_tiny", "dcgan", "mobilenetv2", "resnet50", "resnext50", "unet",
         "unet3d", "wavenet")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["steps", "blocks", "layers", "overhead"])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--batch", action="append", metavar="FILE",
                        help="lists of layers, all of problems/ unless given")  # fmt: skip
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    files = options.batch or [os.path.join(ROOT, "problems", name + ".txt") for name in LISTS]
    print(f"PyTorch {torch.__version__}, {options.threads} threads")
    for what in options.what:
        {"steps": steps, "blocks": blocks, "layers": lambda: layers(files),
         "overhead": overhead}[what]()  # fmt: skip


if __name__ == "__main__":
    main()

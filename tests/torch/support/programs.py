"""The programs of the scenarios."""

import torch


def inner(x):
    return x + 1


def outer():
    return [inner(x) for x in range(3)] + list(generate())


def generate():
    yield 1
    yield inner(2)


def c_calls():
    text = []
    text.append(len("abc"))
    return sorted(text, key=inner), list(), int("3"), str(4), dict(), torch.ones(2)


def raises():
    try:
        int("no number")
        next(iter([]))
    except (ValueError, StopIteration):
        pass
    try:
        fails()
    except KeyError:
        return inner(0)


def fails():
    return {}["missing"]


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(3, 4)
        self.second = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.second(self.first(x).relu())


class Skips(torch.nn.Linear):
    def __call__(self, x):
        return self.forward(x)


class CallsSuper(torch.nn.Linear):
    def __call__(self, x):
        return super().__call__(x)


def train(net, optimizer, x):
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()

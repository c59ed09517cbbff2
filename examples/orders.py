"""A slow program, for the story in the README: it prices the orders of a shop, and copies the settings for each of
them. `--fixed` runs it with the settings copied once.

usage: kpytrace run examples/orders.py [--fixed] [ORDERS]
"""

import copy
import functools
import json
import random
import sys

import kpytrace

COUNTRIES = "at be bg cy cz de dk ee es fi fr gr hr hu ie it lt lu lv mt nl pl pt ro se si sk".split()
SETTINGS = {
    "rates": {country: {"standard": 17 + i % 9, "reduced": 5 + i % 4} for i, country in enumerate(COUNTRIES)},
    "shipping": [{"above": 0, "price": 590}, {"above": 3000, "price": 390}, {"above": 5000, "price": 0}],
}


def read_settings():
    """Returns a copy, which the caller may change."""
    return copy.deepcopy(SETTINGS)


def lines(count, seed=3):
    """Yields orders as lines of JSON, as the log of a shop has them."""
    dice = random.Random(seed)
    for number in range(count):
        items = [{"price": dice.randint(100, 4000), "kind": dice.choice(("standard", "reduced"))}
                 for _ in range(dice.randint(1, 4))]
        yield json.dumps({"number": number, "country": dice.choice(COUNTRIES), "items": items})


def shipping(amount, steps):
    return [step["price"] for step in steps if amount >= step["above"]][-1]


def price(order):
    settings = read_settings()
    rates = settings["rates"][order["country"]]
    amount = sum(item["price"] * (100 + rates[item["kind"]]) // 100 for item in order["items"])
    return amount + shipping(amount, settings["shipping"])


def main(count):
    with kpytrace.span("reading"):
        orders = [json.loads(line) for line in lines(count)]
    with kpytrace.span("pricing", orders=count):
        prices = [price(order) for order in orders]
    with kpytrace.span("writing"):
        print(f"{count:,} orders, {sum(prices) / 100:,.2f} EUR, the largest {max(prices) / 100:,.2f}")


if __name__ == "__main__":
    if "--fixed" in sys.argv:
        read_settings = functools.cache(read_settings)
    main(*[int(word) for word in sys.argv[1:] if word.isdigit()] or [5000])

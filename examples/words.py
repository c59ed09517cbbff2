"""A small program to trace: a generator makes texts, two threads count their words, and a recursive function
merges the counts. Its marks, spans and counters cost almost nothing when the program is not traced.

usage: kpytrace run -o words.kpt examples/words.py [TEXTS]
"""

import collections
import queue
import random
import sys
import threading

import kpytrace

SYLLABLES = ("ka", "py", "tra", "ce", "lo", "mi", "nu", "re")


def word(dice, length):
    return "" if length == 0 else dice.choice(SYLLABLES) + word(dice, length - 1)


def texts(count, seed=7):
    dice = random.Random(seed)
    for number in range(count):
        with kpytrace.span("making a text", number=number):
            yield " ".join(word(dice, dice.randint(1, 3)) for _ in range(200))


def count_words(text):
    counts = collections.Counter()
    for each in text.split():
        counts[each.lower()] += 1
    return counts


def merge(parts):
    """Merges the counts by halves."""
    if len(parts) < 2:
        return parts[0] if parts else collections.Counter()
    middle = len(parts) // 2
    return merge(parts[:middle]) + merge(parts[middle:])


def work(waiting, found):
    while (text := waiting.get()) is not None:
        found.append(count_words(text))


def main(count):
    waiting, found = queue.Queue(), []
    workers = [threading.Thread(target=work, args=(waiting, found), name=f"worker {i}") for i in range(2)]
    for thread in workers:
        thread.start()
    for text in texts(count):
        waiting.put(text)
        kpytrace.counter("texts waiting", waiting.qsize())
    kpytrace.mark("all texts are made", texts=count)
    for thread in workers:
        waiting.put(None)
    for thread in workers:
        thread.join()
    with kpytrace.span("merging"):
        total = merge(found)
    print(f"{total.total():,} words, {len(total):,} different; the most frequent:",
          ", ".join(each for each, _ in total.most_common(3)))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)

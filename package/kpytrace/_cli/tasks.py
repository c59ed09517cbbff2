"""`kpytrace top --tasks`: lists the tasks of asyncio by running time."""

from __future__ import annotations

from .formatting import amount, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .kpt_file import KptFile


def print_tasks(file: KptFile, count: int, by_coroutine: bool) -> int:
    """Prints the tasks that ran longest, or the coroutines, each with the sum of its tasks."""
    bar = file.bar("reading")
    groups: dict[str, list[int]] = {}
    for number, (name, coroutine, resumes, running, first, last) in enumerate(
            file.standalone.tasks(file.handle, bar)):
        words = [coroutine] if by_coroutine else [name, coroutine]
        title = " ".join(filter(None, (word.decode("utf-8", "replace") for word in words)))
        group = groups.setdefault(title if by_coroutine else f"{number} {title}", [0, 0, 0, 0])
        for i, value in enumerate((1, resumes, running, last - first)):
            group[i] += value
    if bar:
        bar.close()
    head = f"{'tasks':>10}  " if by_coroutine else ""
    print(f"{head}{'resumes':>12}  {'running':>11}  {'waiting':>11}  {'first to last':>13}  "
          f"{'coroutine' if by_coroutine else 'task'}")
    rows = sorted(groups.items(), key=lambda row: -row[1][2])[:count]
    for title, (tasks, resumes, running, life) in rows:
        head = f"{tasks:>10,}  " if by_coroutine else ""
        title = title if by_coroutine else title.partition(" ")[2]
        print(f"{head}{resumes:>12,}  {amount(running):>11}  {amount(max(life - running, 0)):>11}  "
              f"{amount(life):>13}  {shown(title)}")
    return 0

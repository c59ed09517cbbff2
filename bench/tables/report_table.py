"""Measures the report page with a million calls: the time to write and to open it, and the frames while the
user zooms and moves with the keys, in a headless Chromium, which draws without a GPU."""
import pathlib
import subprocess
import sys
import tempfile
import time

from tracing_table import ROOT, heading, row

sys.path.insert(0, str(ROOT / "tests/report"))
from browser import Browser, find  # noqa: E402

# Several threads, stacks of different depth, calls of very different length: a random walk, always the same.
PROGRAM = """
import random, threading
def leaf(n): return n
functions = []
for i in range(60):
    exec(f"def f{i}(n, walk):\\n    leaf(n)\\n    if n and walk.random() < .93: functions[walk.randrange(60)](n - 1, walk)\\n"
         f"    for _ in range(walk.randrange(4)): leaf(n)")
    functions.append(globals()[f"f{i}"])
def work(seed):
    walk = random.Random(seed)
    for _ in range(1570): functions[walk.randrange(60)](walk.randrange(40), walk)
threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
RECORDER = """(() => { const line = kpytrace.timeline, draw = line.draw.bind(line);
    window.frames = []; window.draws = []; window.boxes = 0;
    line.draw = () => { const at = performance.now(); draw(); draws.push(performance.now() - at);
                        boxes = Math.max(boxes, line.boxes.count); };
    const tick = (at) => { frames.push(at); requestAnimationFrame(tick); }; requestAnimationFrame(tick); })()"""
KEYS = (("w", 1.5), ("d", 1), ("a", 1), ("s", 1.5), ("ArrowDown", 0.7), ("w", 1.5), ("s", 2))


def percentiles(values):
    ordered = sorted(values)
    return [ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)], ordered[-1]]


def drive(browser):
    """Holds each key for so long; frame and drawing times in ms, and the most rectangles of a frame."""
    browser.move(*browser.place("#rows"))
    browser.run(RECORDER)
    for key, seconds in KEYS:
        browser.hold(key)
        time.sleep(seconds)
        browser.release(key)
    frames = browser.run("frames.slice(1).map((at, i) => at - frames[i])")
    return percentiles(frames), percentiles(browser.run("draws")), browser.run("boxes")


def report(build):
    """The report page with a million calls."""
    if not find():
        print("report: skipped, because Chromium is not installed; run `make browser`")
        return {}
    python = (build / "package/python").read_text(encoding="utf-8").strip()
    with tempfile.TemporaryDirectory() as folder:
        script, trace, page = (pathlib.Path(folder, name) for name in ("program.py", "trace.kpt", "report.html"))
        script.write_text(PROGRAM, encoding="utf-8")

        def kpytrace(*words):
            subprocess.run([python, "-m", "kpytrace", *words], check=True, cwd=folder,
                           env={"PYTHONPATH": str(build / "package")})

        kpytrace("run", "--quiet", "-o", trace, script)
        began = time.perf_counter()
        kpytrace("report", "--quiet", trace, "-o", page)
        written = time.perf_counter() - began
        browser = Browser()
        try:
            began = time.perf_counter()
            browser.open(page.as_uri())
            browser.frames()
            opened = time.perf_counter() - began
            calls = browser.run("kpytrace.model.sections[0].stats.calls")
            frames, draws, boxes = drive(browser)
        finally:
            browser.close()
        size = page.stat().st_size
    print(f"The report of {calls:,} calls: {size:,} bytes, {size / calls:.1f} a call, written in {written:.2f} s, opened "
          f"in {opened:.2f} s; at most {boxes:,} rectangles a frame\n")
    heading("ms, while keys are held", "p50", "p95", "longest")
    row("from one frame to the next", *(f"{value:.1f}" for value in frames))
    row("drawing", *(f"{value:.1f}" for value in draws))
    return {"calls": calls, "bytes": size, "written_s": written, "opened_s": opened, "frame_ms": frames, "draw_ms": draws,
            "rectangles": boxes}

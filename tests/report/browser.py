"""A headless Chromium, controlled by its DevTools protocol over two pipes, with real clicks, keys and wheel
events. It needs only the standard library, so the tests need nothing but a browser."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SHIFT, CTRL = 8, 2
# Keys that are not letters, in the form that the page receives: code and number.
KEYS = {"Enter": ("Enter", 13), "Escape": ("Escape", 27), "ArrowLeft": ("ArrowLeft", 37),
        "ArrowUp": ("ArrowUp", 38), "ArrowRight": ("ArrowRight", 39), "ArrowDown": ("ArrowDown", 40)}
DEADLINE_S = 60


def find():
    """Returns the browser's path, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class BrowserError(Exception):
    """An error of the protocol, or of the page's own code."""


class Browser:
    """One page in its own browser. `problems` has the messages of its console and its exceptions, `requests` the
    addresses that it requested."""

    def __init__(self, width=1280, height=800):
        self._folder = tempfile.mkdtemp(prefix="kpt-browser-")
        # Moved away from 3, which the browser reads from, and 4, which it writes to.
        to_browser, self._in, self._out, from_browser = map(self._away, (*os.pipe(), *os.pipe()))
        command = [find(), "--headless=new", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu",
                   "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb",
                   f"--window-size={width},{height}", f"--user-data-dir={self._folder}",
                   *(["--no-sandbox"] if os.geteuid() == 0 else []), "about:blank"]

        def keep_pipes():
            os.dup2(to_browser, 3)
            os.dup2(from_browser, 4)

        # The browser must not preload the libraries that Python needs for a sanitizer's build.
        env = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        self._process = subprocess.Popen(command, env=env, preexec_fn=keep_pipes, pass_fds=(3, 4), close_fds=True,
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._number, self._rest = 0, b""
        self.problems, self.requests = [], []
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(width, height)

    @staticmethod
    def _away(fd):
        copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10)
        os.close(fd)
        return copy

    def close(self):
        os.close(self._in)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        shutil.rmtree(self._folder, ignore_errors=True)

    # --- the protocol ---

    def _receive(self, deadline):
        while b"\0" not in self._rest:
            if not select.select([self._out], [], [], max(deadline - time.monotonic(), 0))[0]:
                raise BrowserError("the browser does not answer")
            data = os.read(self._out, 1 << 20)
            if not data:
                raise BrowserError("the browser has ended")
            self._rest += data
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def _note(self, message):
        what, params = message.get("method"), message.get("params", {})
        if what == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description") or details["text"])
        elif what == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(a.get("value", a)) for a in params["args"]))
        elif what == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def send(self, method, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._in, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = self._receive(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            self._note(answer)

    # --- the page ---

    def resize(self, width, height, ratio=1):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio,
                  mobile=False)

    def prefer(self, scheme):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def network(self, is_there):
        self.send("Network.emulateNetworkConditions", offline=not is_there, latency=0, downloadThroughput=-1,
                  uploadThroughput=-1)

    def open(self, address):
        self.send("Page.navigate", url=address)
        self.wait("!!window.kpytrace || document.getElementById('message')?.textContent.startsWith('This report')")

    def run(self, code):
        """Returns the value of an expression in the page. Waits for promises."""
        answer = self.send("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise BrowserError(f"{code}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def wait(self, code):
        """Waits until the expression is true."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                if self.run(code):
                    return
            except BrowserError as error:  # while another page is loaded
                if "context" not in str(error):
                    raise
            if self.problems or time.monotonic() > deadline:
                raise BrowserError(f"it never came to be: {code} {self.problems}")
            time.sleep(0.02)

    def frames(self, count=2):
        """Waits until COUNT frames were drawn."""
        self.run(f"(async () => {{ for (let i = 0; i < {count}; i++) await new Promise(requestAnimationFrame); }})()")

    def screenshot(self, path):
        data = self.send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def accessibility(self):
        """Returns the role and the name of each element as a screen reader receives them."""
        nodes = self.send("Accessibility.getFullAXTree")["nodes"]
        return [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]

    # --- the user ---

    def _mouse(self, kind, x, y, modifiers=0, **more):
        self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, modifiers=modifiers, **more)

    def move(self, x, y):
        self._mouse("mouseMoved", x, y)

    def click(self, x, y, count=1, modifiers=0):
        self.move(x, y)
        for number in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self._mouse(kind, x, y, modifiers, button="left", clickCount=number)
        self.frames()

    def drag(self, start, end, modifiers=0, steps=8):
        self.move(*start)
        self._mouse("mousePressed", *start, modifiers, button="left", clickCount=1)
        for i in range(1, steps + 1):
            x, y = (a + (b - a) * i / steps for a, b in zip(start, end))
            self._mouse("mouseMoved", x, y, modifiers, button="left", buttons=1)
        self._mouse("mouseReleased", *end, modifiers, button="left", clickCount=1)
        self.frames()

    def wheel(self, x, y, down=0, across=0, modifiers=0):
        self._mouse("mouseWheel", x, y, modifiers, deltaX=across, deltaY=down)
        self.frames(3)

    def touchscreen(self, is_there):
        self.send("Emulation.setTouchEmulationEnabled", enabled=is_there, maxTouchPoints=2)
        self.frames()

    def touch(self, *fingers):
        """Puts fingers down, moves them, and lifts them. Each is its points on the screen, as many as the others."""
        for i, places in enumerate(zip(*fingers)):
            points = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(places)]
            self.send("Input.dispatchTouchEvent", type="touchMove" if i else "touchStart", touchPoints=points)
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.frames()

    def _key(self, kind, key, modifiers, **more):
        code, number = KEYS.get(key, ("", ord(key.upper()[0]) if key.isalnum() else 0))
        self.send("Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=number,
                  modifiers=modifiers, **more)

    def hold(self, key, modifiers=0):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        self._key("keyDown" if text else "rawKeyDown", key, modifiers, text=text)

    def release(self, key, modifiers=0):
        self._key("keyUp", key, modifiers)

    def key(self, key, modifiers=0):
        self.hold(key, modifiers)
        self.release(key, modifiers)
        self.frames()

    def type(self, text):
        for letter in text:
            self.key(letter)

    # --- elements ---

    def place(self, selector):
        """Returns the middle of an element."""
        return self.run(f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
                        " return [b.x + b.width / 2, b.y + b.height / 2]; })()")

    def press(self, selector, **how):
        self.click(*self.place(selector), **how)

    def text(self, selector):
        return self.run(f"document.querySelector({json.dumps(selector)}).textContent")

    def shown(self, selector):
        """Whether the element is visible, with a size."""
        return self.run(f"document.querySelector({json.dumps(selector)}).getClientRects().length > 0")

    def choose(self, selector, label):
        """Chooses an option by its text, as a user does with the keyboard."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        index = self.run(f"[...document.querySelector({json.dumps(selector)}).options]"
                         f".findIndex((o) => o.text === {json.dumps(label)})")
        current = self.run(f"document.querySelector({json.dumps(selector)}).selectedIndex")
        for _ in range(abs(index - current)):
            self.key("ArrowDown" if index > current else "ArrowUp")
        self.run("document.activeElement.blur()")
        self.frames()

"""A browser without a window, driven over a pipe (the DevTools protocol)."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    """with Browser() as page: page.open(path); page.run("1 + 1")"""

    def __init__(self, timeout=120):
        self.timeout = timeout
        self.profile = tempfile.mkdtemp(prefix="tracefs-browser-")
        to_read, self.out = os.pipe()
        self.inp, to_write = os.pipe()

        def place():
            # The pipe of the protocol is descriptors 3 and 4.
            os.dup2(os.dup(to_read), 63)
            os.dup2(os.dup(to_write), 64)
            os.dup2(63, 3)
            os.dup2(64, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update",
             "--remote-debugging-pipe", f"--user-data-dir={self.profile}",
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place,
            start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.number = 0
        self.events = []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.out)
        os.close(self.inp)
        try:
            os.killpg(self.process.pid, 15)
            self.process.wait(20)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def _message(self, until):
        while b"\0" not in self.buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            more = os.read(self.inp, 1 << 20)
            if not more:
                raise EOFError("the browser ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.out, data):]
        until = time.monotonic() + self.timeout
        while True:
            answer = self._message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def run(self, script):
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script,
                           returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, script):
        until = time.monotonic() + self.timeout
        while not self.run(script):
            if time.monotonic() > until:
                raise TimeoutError(script)
            time.sleep(0.05)

    def open(self, path, fragment=""):
        self.events.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=f"file://{path}{fragment}")
        self.wait("document.readyState === 'complete' && "
                  "location.protocol === 'file:'")

    def key(self, key, code=None, text=None, modifiers=0):
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key,
                  code=code or key, modifiers=modifiers, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key,
                  code=code or key, modifiers=modifiers)

    def mouse(self, kind, x, y, buttons=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y,
                  button="left", buttons=buttons, clickCount=1)

    def screenshot(self, path):
        png = self.call("Page.captureScreenshot", format="png",
                        captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(png))

    def complaints(self):
        """What was logged as an error or thrown since the page was opened."""
        found = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(parameters["exceptionDetails"])
            elif method == "Log.entryAdded":
                if parameters["entry"]["level"] in ("error", "warning"):
                    found.append(parameters["entry"]["text"])
            elif method == "Runtime.consoleAPICalled":
                if parameters["type"] in ("error", "warning", "assert"):
                    found.append([a.get("value", a.get("description"))
                                  for a in parameters["args"]])
        return found

    def requests(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

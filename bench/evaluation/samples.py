"""Raw samples of a run: one JSON object a line, written as they are made, so
that an interrupted run goes on where it was.

A sample: experiment, configuration, round, and either error (text) or value
and unit, elapsed and cpu (seconds; cpu of the whole machine), and what the
configuration recorded (events, seen, lost, bytes, stages, note), detail.
"""

import json
import os


class Samples:
    def __init__(self, path):
        self._path = path
        self.all = []
        if path.exists():
            # The last line may be cut: that sample is made again.
            good = 0
            with open(path, "rb") as file:
                for line in file:
                    try:
                        self.all.append(json.loads(line))
                    except ValueError:
                        break
                    if not line.endswith(b"\n"):
                        self.all.pop()
                        break
                    good += len(line)
            os.truncate(path, good)

    def add(self, sample):
        self.all.append(sample)
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(sample) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def of(self, experiment, configuration=None):
        return [s for s in self.all if s["experiment"] == experiment
                and configuration in (None, s["configuration"])]

    def has(self, experiment, configuration, round_):
        return any(s["round"] == round_
                   for s in self.of(experiment, configuration))

    def values(self, experiment, configuration, key="value"):
        """Figures by round, without those that failed."""
        return {s["round"]: s[key] for s in self.of(experiment, configuration)
                if s.get(key) is not None and "error" not in s}

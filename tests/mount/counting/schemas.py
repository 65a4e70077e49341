"""What the published schemas require of a file event: OCSF 1.3.0 (class
file_activity and the objects in it), ECS 8.17 and the CEF dictionary."""

import datetime
import re

from tracefs_harness import expect

# Attributes with requirement "required", of the class or object; and of which
# ones at least one must be there.
OCSF_REQUIRED = {
    "file_activity": ["activity_id", "actor", "category_uid", "class_uid",
                      "device", "file", "metadata", "severity_id", "time",
                      "type_uid"],
    "base_event": ["activity_id", "category_uid", "class_uid", "metadata",
                   "severity_id", "time", "type_uid"],
    "metadata": ["product", "version"],
    "product": ["vendor_name"],
    "device": ["type_id"],
    "file": ["name", "type_id"],
    "os": ["name", "type_id"],
}
OCSF_ONE_OF = {
    "actor": ["process", "user", "invoked_by", "session", "app_name",
              "app_uid"],
    "process": ["pid", "uid", "cpid"],
    "user": ["account", "name", "uid"],
    "device": ["ip", "uid", "name", "hostname", "instance_uid",
               "interface_uid", "interface_name"],
}
OCSF_ACTIVITIES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 99}
OCSF_TYPES = {
    int: ["activity_id", "category_uid", "class_uid", "severity_id", "time",
          "type_uid", "status_id", "pid", "tid", "size", "type_id", "duration",
          "count", "sequence"],
    str: ["name", "path", "uid", "version", "vendor_name", "hostname",
          "parent_folder", "status", "status_code", "activity_name"],
}


def _required(kind, value):
    for key in OCSF_REQUIRED.get(kind, []):
        expect(key in value, f"OCSF {kind} without {key}: {value}")
    one_of = OCSF_ONE_OF.get(kind)
    expect(not one_of or set(one_of) & set(value),
           f"OCSF {kind} with none of {one_of}: {value}")


def check_ocsf(event):
    loss = event["class_uid"] == 0
    _required("base_event" if loss else "file_activity", event)
    _required("metadata", event["metadata"])
    _required("product", event["metadata"]["product"])
    _required("device", event["device"])
    expect(event["type_uid"] == event["class_uid"] * 100 +
           event["activity_id"], "type_uid")
    expect(event["time"] > 10**12, "milliseconds")
    if not loss:
        expect(event["class_uid"] == 1001 and event["category_uid"] == 1,
               "class")
        expect(event["activity_id"] in OCSF_ACTIVITIES, "activity")
        for file in ("file", "file_result"):
            if file in event:
                _required("file", event[file])
        _required("actor", event["actor"])
        for part in ("process", "user"):
            if part in event["actor"]:
                _required(part, event["actor"][part])
    _types({k: v for k, v in event.items() if k != "unmapped"})


def _types(value):
    for key, inner in value.items():
        if isinstance(inner, dict):
            _types(inner)
            continue
        for kind, names in OCSF_TYPES.items():
            if key in names:
                expect(isinstance(inner, kind), f"{key}: {inner!r}")


# Keyword fields are text; these are numbers.
ECS_LONG = {"event.duration", "event.sequence", "file.size", "process.pid",
            "process.thread.id"}
ECS_KEYWORD = {"event.kind", "event.action", "event.outcome", "event.module",
               "event.dataset", "event.provider", "event.reason", "file.path",
               "file.directory", "file.name", "file.extension", "file.inode",
               "file.mode", "file.uid", "file.gid", "file.type",
               "file.target_path", "process.name", "process.executable",
               "user.id", "user.group.id", "host.name", "host.hostname",
               "ecs.version", "error.code", "message", "@timestamp",
               "file.Ext.original.path", "file.Ext.original.name"}
ECS_ARRAY = {"event.category", "event.type"}


def check_ecs(event):
    flat = dict(_flatten(event, ""))
    for key in ("@timestamp", "ecs.version"):  # what the schema requires
        expect(key in flat, f"ECS without {key}")
    datetime.datetime.strptime(flat["@timestamp"][:26],
                               "%Y-%m-%dT%H:%M:%S.%f")
    expect(flat["event.kind"] in ("event", "pipeline_error"), "kind")
    expect(flat["event.category"] == ["file"], "category")
    expect(set(flat["event.type"]) <= {"access", "change", "creation",
                                       "deletion", "info"}, "type")
    expect(flat.get("event.outcome", "unknown") in
           ("success", "failure", "unknown"), "outcome")
    for key, value in flat.items():
        if key.startswith("tracefs."):
            continue  # ours
        known = (key in ECS_LONG and isinstance(value, int) or
                 key in ECS_KEYWORD and isinstance(value, str) or
                 key in ECS_ARRAY and isinstance(value, list))
        expect(known, f"not of the schema: {key} = {value!r}")


def _flatten(value, prefix):
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _flatten(inner, f"{prefix}{key}.")
        else:
            yield prefix + key, inner


# Key: what its value must look like (the dictionary's data types and lengths).
CEF_KEYS = {
    "rt": r"\d{13}", "externalId": r"\d{1,40}", "act": r".{1,63}",
    "outcome": r"success|failure", "reason": r".{1,1023}",
    "filePath": r"(?s).{1,4096}", "fname": r"(?s).{1,1023}",
    "oldFilePath": r"(?s).{1,4096}", "oldFileName": r"(?s).{1,1023}",
    "fileId": r"\d+", "fsize": r"\d+", "filePermission": r"[0-7]{4}",
    "suid": r"\d+", "spid": r"\d+", "sproc": r"(?s).{1,1023}", "cnt": r"\d+",
    "cn1": r"-?\d+", "cn1Label": "offset", "cn2": r"\d+", "cn2Label": "length",
    "cn3": r"\d+", "cn3Label": "durationNs", "dvchost": r".{1,100}",
}


def parse_cef(line):
    """The header's seven fields and the pairs, without their escapes."""
    expect("\n" not in line and "\r" not in line, "a line end")
    fields = re.match(r"CEF:0((?:\|(?:[^|\\]|\\.)*){6})\|(.*)$", line)
    expect(fields, f"not CEF: {line}")
    header = [re.sub(r"\\(.)", r"\1", f) for f in
              re.split(r"(?<!\\)\|", fields[1])[1:]]
    pairs = {}
    # A key is a word before '=' that no backslash hides.
    starts = list(re.finditer(r"(?:^| )(\w+)=", fields[2]))
    for i, start in enumerate(starts):
        end = starts[i + 1].start() if i + 1 < len(starts) else len(fields[2])
        raw = fields[2][start.end():end]
        expect(not re.search(r"(?<!\\)(?:\\\\)*=", raw), f"bare '=': {raw}")
        pairs[start[1]] = re.sub(
            r"\\(.)", lambda m: {"n": "\n", "r": "\r"}.get(m[1], m[1]), raw)
    return header, pairs


def check_cef(line):
    header, pairs = parse_cef(line)
    expect(header[:2] == ["Tracefs", "Tracefs"], str(header))
    expect(0 <= int(header[5]) <= 10, "severity")
    for key in ("rt", "externalId"):
        expect(key in pairs, f"CEF without {key}")
    for key, value in pairs.items():
        expect(key in CEF_KEYS and re.fullmatch(CEF_KEYS[key], value),
               f"CEF {key}={value!r}")
    return header, pairs

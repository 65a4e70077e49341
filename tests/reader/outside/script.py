"""A script of somebody else: the same as program.c counts."""
import sys
import warnings

import tracefs

warnings.simplefilter("ignore", tracefs.IncompleteWarning)
trace = tracefs.open(sys.argv[1], where=sys.argv[2] if len(sys.argv) > 2
                     else None)
uids = [event["uid"] for event in trace]
print(f"{len(uids)} events, {uids.count(0)} of root, {len(trace.findings)} "
      f"reports, {'complete' if trace.complete else 'incomplete'}")
